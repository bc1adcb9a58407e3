/** The limit on the scans of a JPEG: even a tiny scan takes time to decode. */
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import { decode, decodeFast } from "../../images/image.ts"
import { jpegSize } from "../../images/jpeg-size.ts"
import { hasMoreScans, scansAllowed } from "../../images/scans.ts"
import { random } from "../random.ts"

const seed = 20_261_127
const scans_max = 100
const options = { pixels_max: 50_000_000, auto_orient: false }

const [sequential, progressive] = [0xc1, 0xc2]
const begin = [0xff, 0xd8]
const end = [0xff, 0xd9]
const segment = (marker: number, ...body: ReadonlyArray<number>) => {
  const length = body.length + 2
  return [0xff, marker, length >> 8, length & 0xff, ...body]
}
const word = (value: number) => [value >> 8, value & 0xff]

interface Written {
  readonly scans: number
  readonly side?: number
  readonly frame?: number
  readonly components?: number
  readonly precision?: number
  /** Before the frame. */
  readonly head?: ReadonlyArray<number>
  /** A restart after each block. */
  readonly restarts?: boolean
  /** Before each scan but the first. */
  readonly between?: ReadonlyArray<number>
}

/** Medium gray: each block of each scan is one bit, an end of block. */
const written = (wanted: Written) => {
  const { scans, side = 16, frame = progressive, components = 1, precision = 8 } = wanted
  const { head = [], restarts = false, between = [] } = wanted
  const names = Array.from({ length: components }, (_, n) => n + 1)
  const blocks = Math.ceil(side / 8) ** 2
  const code = [1, ...Array.from({ length: 15 }, () => 0), 0]
  /** That many zero bits, padded with ones to a byte. */
  const data = (bits: number): ReadonlyArray<number> => [
    ...Array.from({ length: bits >> 3 }, () => 0),
    ...(bits % 8 === 0 ? [] : [0xff >> (bits % 8)]),
  ]
  const restarted = () =>
    Array.from({ length: blocks }, (_, n) =>
      n === 0 ? data(1) : [0xff, 0xd0 + ((n - 1) % 8), ...data(1)],
    ).flat()
  const scan = (n: number) => {
    const is_progressive = frame === progressive
    // The DC coefficients of all components first, then one AC scan at a time.
    const own = is_progressive && n === 0 ? names : [names[n % components] ?? 1]
    const at = n === 0 ? 0 : 1 + (Math.floor(n / components) % 63)
    const [from, to] = is_progressive ? [at, at] : [0, 63]
    const bits = blocks * own.length * (is_progressive ? 1 : 2)
    const coded = own.flatMap((name) => [name, 0])
    return [
      ...(n === 0 ? [] : between),
      ...segment(0xda, own.length, ...coded, from, to, 0),
      ...(restarts ? restarted() : data(bits)),
    ]
  }
  const sampled = names.flatMap((name) => [name, 0x11, 0])
  return Buffer.from([
    ...begin,
    ...head,
    ...segment(0xdb, 0, ...Array.from({ length: 64 }, () => 1)),
    ...(restarts ? segment(0xdd, 0, 1) : []),
    ...segment(frame, precision, ...word(side), ...word(side), components, ...sampled),
    ...segment(0xc4, 0x00, ...code),
    ...segment(0xc4, 0x10, ...code),
    ...Array.from({ length: scans }, (_, n) => scan(n)).flat(),
    ...end,
  ])
}

const reported = async (bytes: Uint8Array, change: Partial<typeof options> = {}) => {
  const decoded = await decode(bytes, { ...options, ...change })
  return "problem" in decoded ? decoded : [decoded.width, decoded.height]
}
const refusal = (scans: number) => ({
  problem: "content",
  detail: `It cannot be decoded: at its size, at most ${scans} scans are allowed.`,
})

describe("the scans of a JPEG", () => {
  const kinds: ReadonlyArray<readonly [string, Omit<Written, "scans">]> = [
    ["progressive", {}],
    ["progressive, of colours", { components: 3 }],
    ["progressive, of ink", { components: 4 }],
    ["sequential", { frame: sequential, components: 3 }],
    ["with restarts", { restarts: true }],
    ["with bytes of fill", { between: [0xff, 0xff] }],
    ["with comments between them", { between: segment(0xfe, ...segment(0xda, 1, 1)) }],
  ]

  it.each(kinds)("are at most 100: %s", async (_name, kind) => {
    expect(await reported(written({ ...kind, scans: scans_max }))).toEqual([16, 16])
    const many = written({ ...kind, scans: scans_max + 1 })
    expect(await reported(many)).toEqual(refusal(scans_max))
    expect(await reported(many, { auto_orient: true })).toEqual(refusal(scans_max))
    expect(await decodeFast(many, options, 8)).toEqual(refusal(scans_max))
  })

  it("are limited for 12 bits, whose header only the decoder reads", async () => {
    const deep = written({ scans: scans_max + 1, precision: 12 })
    expect(jpegSize(deep)).toBeUndefined()
    expect(await reported(deep)).toMatchObject({ problem: "content" })
  })

  it("are fewer for a large image", async () => {
    expect([1, 25e6, 26e6, 50e6, 500e6, 5e9].map(scansAllowed)).toEqual([100, 100, 96, 50, 5, 1])
    const side = 7000
    const limit = scansAllowed(side * side)
    expect(limit).toBeLessThan(60)
    // A truncated scan would still be read.
    const empty = segment(0xda, 1, 1, 0, 1, 1, 0)
    const few = written({ scans: 1, side }).subarray(0, -end.length)
    const scans = (count: number) =>
      Buffer.concat([few, ...Array.from({ length: count - 1 }, () => Buffer.from(empty))])
    expect(hasMoreScans(scans(limit), limit)).toBe(false)
    expect(await reported(scans(limit + 1))).toEqual(refusal(limit))
  })

  it("do not include those of a thumbnail, in a comment, or after the end", async () => {
    const thumbnail = written({ scans: scans_max + 1 }).subarray(0, 60_000)
    const head = [...segment(0xe1, ...thumbnail), ...segment(0xfe, ...segment(0xda, 1, 1))]
    const bytes = written({ scans: scans_max, head })
    expect(await reported(bytes)).toEqual([16, 16])
    expect(await reported(Buffer.concat([bytes, thumbnail]))).toEqual([16, 16])
  })

  it("are counted after bytes that the decoder skips", () => {
    const [data, alone] = [[1, 2, 3, 0xff, 0, 0xda, 0xff], [0x05]]
    for (const between of [data, [0xff, ...alone], [0xff, 0xff, 0, 0xda], [7, 0xff, 0xd7]]) {
      const bytes = written({ scans: 9, between: [...between, 0] })
      expect([hasMoreScans(bytes, 9), hasMoreScans(bytes, 8)]).toEqual([false, true])
    }
  })

  it("are counted up to the end of a truncated file", () => {
    const bytes = written({ scans: 12, between: segment(0xfe, 1, 2, 3) })
    let more = 0
    for (let length = 2; length < bytes.length; length++) {
      if (hasMoreScans(bytes.subarray(0, length), 11)) more++
    }
    const last = bytes.lastIndexOf(Buffer.from([0xff, 0xda]))
    expect(more).toBe(bytes.length - last - 2)
  })

  it("after a complete sequential first scan are not counted", async () => {
    const bytes = await sharp({ create: { ...create, background: "green" } })
      .jpeg()
      .toBuffer()
    const scan = bytes.subarray(bytes.indexOf(Buffer.from([0xff, 0xda])), -end.length)
    const scans = Array.from({ length: scans_max * 2 }, () => scan)
    const many = Buffer.concat([bytes.subarray(0, -end.length), ...scans, Buffer.from(end)])
    // The decoder reads only the first one.
    expect(await reported(many)).toEqual([40, 30])
  })

  it("of sharp's output are all allowed", async () => {
    const image = () => sharp({ create: { ...create, background: "green" } })
    for (const optimiseScans of [false, true]) {
      const jpeg = { progressive: true, optimiseScans }
      expect(await reported(await image().jpeg(jpeg).toBuffer())).toEqual([40, 30])
      const ink = await image().toColourspace("cmyk").jpeg(jpeg).toBuffer()
      expect(await reported(ink)).toEqual([40, 30])
      expect(hasMoreScans(ink, 20)).toBe(false)
    }
  })

  it(`are as many as a byte-by-byte search finds (seed ${seed})`, () => {
    const next = random(seed)
    const some = (length: number) => Array.from({ length }, () => odd[next(odd.length)] ?? 0)
    const odd = [0xff, 0xff, 0, 1, 0x05, 0xbf, 0xc4, 0xd0, 0xd8, 0xda, 0xe0]
    let found = 0
    for (let n = 0; n < 2000; n++) {
      const pieces = Array.from({ length: next(20) }, () => {
        const marker = [0xda, 0xda, 0xe1, 0xfe, 0xf0, 0x4f, 0xd9][next(n % 2 === 0 ? 6 : 7)] ?? 0
        return [...some(next(6)), ...segment(marker, ...some(next(6)))]
      })
      const bytes = Uint8Array.from([...begin, ...pieces.flat(), ...some(next(4))])
      const scans = slowly(bytes)
      found = Math.max(found, scans)
      const more = [scans - 1, scans, scans + 1].map((most) => hasMoreScans(bytes, most))
      expect(more, `file ${n}: ${bytes.join(" ")}`).toEqual([scans > 0, false, false])
    }
    expect(found).toBeGreaterThan(6)
  })
})

const create = { width: 40, height: 30, channels: 3 } as const

/** Searches byte by byte like the decoder. */
const slowly = (bytes: Uint8Array) => {
  const rest = [...bytes.subarray(2)]
  let scans = 0
  while (rest.length > 0) {
    if (rest.shift() !== 0xff) continue
    let marker = rest.shift()
    while (marker === 0xff) marker = rest.shift()
    if (marker === undefined || marker === 0xd9) return scans
    if (marker === 0xda) scans++
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xd8)) continue
    const length = (rest.shift() ?? 0) * 256 + (rest.shift() ?? 0)
    rest.splice(0, length - 2)
  }
  return scans
}
