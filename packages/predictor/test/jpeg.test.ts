/** The decoder of small JPEGs against sharp: the same pixels, or none. */
import sharp, { type JpegOptions } from "sharp"
import { describe, expect, it } from "vitest"
import { jpegHead } from "../images/head.ts"
import { decode } from "../images/image.ts"
import { quick_bytes_max, quickJpeg } from "../jpeg/jpeg.ts"
import { random } from "./random.ts"
import { writtenJpeg } from "./written-jpeg.ts"

const seed = 20_261_124
const options = { pixels_max: 50_000_000, auto_orient: false }
const quick = quickJpeg()

/** Smooth, with some noise on it. */
const image = (width: number, height: number, next: (limit: number) => number) => {
  const [a, b] = [next(40) + 3, next(40) + 3]
  const rgb = Uint8Array.from({ length: width * height * 3 }, (_, n) => {
    const [x, y] = [Math.floor(n / 3) % width, Math.floor(n / 3 / width)]
    return 110 + 100 * Math.sin(x / a + (n % 3)) * Math.cos(y / b) + next(30)
  })
  return sharp(rgb, { raw: { width, height, channels: 3 } })
}

const alone = (bytes: Uint8Array) => {
  const head = jpegHead(bytes)
  return head && quick(bytes, head)
}

/** Sharp's pixels; undefined where it refuses. */
const bySharp = async (bytes: Uint8Array) => {
  const decoded = await decode(bytes, options)
  return "problem" in decoded ? undefined : decoded.rgb
}

describe("a small JPEG in the thread itself", () => {
  const samplings = ["4:2:0", "4:4:4"]

  it(`has sharp's pixels, whatever its size, quality and sampling (seed ${seed})`, async () => {
    const next = random(seed)
    for (let n = 0; n < 60; n++) {
      const [width, height] = n === 0 ? [5, 1] : [next(300) + 5, next(300) + 1]
      const made = image(width, height, next)
      const quality = next(100) + 1
      const chromaSubsampling = samplings[n % 2] ?? ""
      const bytes = await (n % 5 === 4 ? made.greyscale() : made)
        .jpeg({ quality, chromaSubsampling, optimiseCoding: n % 3 === 0 })
        .toBuffer()
      const own = alone(bytes)
      expect(own?.length).toBe(width * height * 3)
      expect(Buffer.compare(own ?? bytes, (await bySharp(bytes)) ?? bytes)).toBe(0)
    }
  })

  it(`has sharp's pixels, whatever codes and numbers it has (seed ${seed})`, async () => {
    const next = random(seed)
    const all = [[0x11], [0x11, 0x11, 0x11], [0x21, 0x11, 0x11], [0x22, 0x11, 0x11]]
    for (let n = 0; n < 80; n++) {
      const [width, height] = [next(n < 40 ? 20 : 90) + 1, next(50) + 1]
      const samplings = all[n % all.length] ?? []
      const bytes = writtenJpeg(width, height, samplings, next)
      const own = alone(bytes)
      // Little halved colour is not made smooth: that is sharp's to do.
      const is_rough = n % all.length > 1 && width < 5
      expect(own?.length, `file ${n}`).toBe(is_rough ? undefined : width * height * 3)
      const theirs = await bySharp(bytes)
      expect(theirs, `file ${n}`).toBeDefined()
      if (own) expect(Buffer.compare(own, theirs ?? bytes), `file ${n}`).toBe(0)
    }
  })

  it("is sharp's where it is progressive, oddly sampled, large or long", async () => {
    const next = random(seed)
    const made = image(200, 100, next)
    const jpeg = (change: JpegOptions) => made.clone().jpeg(change).toBuffer()
    const plain = await jpeg({})
    expect(alone(plain)).toBeDefined()
    expect(alone(await jpeg({ progressive: true }))).toBeUndefined()
    const odd = Buffer.from(plain)
    odd[plain.indexOf(Buffer.from([0xff, 0xc0])) + 11] = 0x41
    expect(alone(odd)).toBeUndefined()
    expect(alone(await image(513, 512, next).jpeg().toBuffer())).toBeUndefined()
    expect(alone(Buffer.concat([plain, Buffer.alloc(quick_bytes_max)]))).toBeUndefined()
    expect(alone(await image(512, 512, next).jpeg().toBuffer())).toBeDefined()
  })

  it("is sharp's where anything in it is not as nearly everybody writes it", async () => {
    const plain = await image(40, 30, random(seed)).jpeg().toBuffer()
    const [tables, frame] = [0xc4, 0xc0].map((marker) => plain.indexOf(Buffer.from([0xff, marker])))
    const changed = (at: number | undefined, byte: number) => {
      const copy = Buffer.from(plain)
      copy[at ?? 0] = byte
      return copy
    }
    const added = (at: number | undefined, ...bytes: ReadonlyArray<number>) =>
      Buffer.concat([plain.subarray(0, at), Buffer.from(bytes), plain.subarray(at)])
    const segment_length = 2 + plain.readUInt16BE((tables ?? 0) + 2)
    const again = plain.subarray(tables, (tables ?? 0) + segment_length)
    const others = {
      "JFIF of another version": added(2, 0xff, 0xe0, 0, 8, ...Buffer.from("JFIF\0"), 2),
      "a fifth table of codes": changed((tables ?? 0) + 4, 4),
      "a table of codes once more": added(tables, ...again),
      "numbers of more bits than there are": changed((tables ?? 0) + 4 + 17, 16),
      "another name of a component": changed((frame ?? 0) + 10, 5),
      "Adobe's word on colours": added(frame, 0xff, 0xee, 0, 3, 0),
      restarts: added(frame, 0xff, 0xdd, 0, 4, 0, 0),
      "a segment without length": added(frame, 0xff, 0xe2, 0, 1),
      "a byte too much": added(plain.length - 2, 0),
      "a byte too little": Buffer.concat([plain.subarray(0, -3), plain.subarray(-2)]),
      "no end": plain.subarray(0, -2),
    }
    const taken = Object.entries(others).filter(([, bytes]) => alone(bytes) !== undefined)
    expect(taken.map(([what]) => what)).toEqual([])
    expect(alone(added(frame, 0xff, 0xe2, 0, 4, 1, 2))).toBeDefined()
    expect(alone(added(2, 0xff, 0xe0, 0, 8, ...Buffer.from("JFIF\0"), 1))).toBeDefined()
  })

  it(`is never taken where sharp refuses it, and never seen otherwise (seed ${seed})`, async () => {
    const next = random(seed)
    const jpeg = await image(90, 60, next).jpeg().toBuffer()
    let [equal, refused] = [0, 0]
    for (let n = 0; n < 300; n++) {
      const damaged = Buffer.from(jpeg.subarray(0, n % 3 === 0 ? next(jpeg.length) : jpeg.length))
      for (let flips = n % 3; flips > 0; flips--) damaged[2 + next(jpeg.length - 2)] = next(256)
      const own = alone(damaged)
      if (own === undefined) {
        refused++
        continue
      }
      const theirs = await bySharp(damaged)
      expect(theirs?.length, `file ${n}`).toBe(own.length)
      expect(Buffer.compare(own, theirs ?? jpeg), `file ${n}`).toBe(0)
      equal++
    }
    expect(equal).toBeGreaterThan(20)
    expect(refused).toBeGreaterThan(100)
  })

  it("has sharp's pixels, or is sharp's, where a row's numbers leave 16 bits", async () => {
    const stripes = Uint8Array.from({ length: 16 * 8 }, (_, n) => (n % 8 < 4 ? 0 : 255))
    const raw = { width: 16, height: 8, channels: 1 } as const
    const jpeg = await sharp(stripes, { raw })
      .toColourspace("b-w")
      .jpeg({ quality: 100 })
      .toBuffer()
    const factors = jpeg.indexOf(Buffer.from([0xff, 0xdb])) + 5
    let taken = 0
    for (let factor = 1; factor < 256; factor += 2) {
      const wild = Buffer.from(jpeg)
      wild[factors + 1] = factor
      const own = alone(wild)
      if (own === undefined) continue
      expect(Buffer.compare(own, (await bySharp(wild)) ?? jpeg), `factor ${factor}`).toBe(0)
      taken++
    }
    expect(taken).toBeGreaterThan(0)
  })

  it("is decoded by it where `decode` is given one, and refused as ever by its size", async () => {
    const jpeg = await image(64, 48, random(seed)).jpeg().toBuffer()
    const asked: Array<number> = []
    const told: typeof quick = (bytes, head) => {
      asked.push(head.width)
      return quick(bytes, head)
    }
    const exact = await decode(jpeg, options)
    expect(await decode(jpeg, { ...options, quick: told })).toEqual({
      ...exact,
      rgb: Uint8Array.from(await sharp(jpeg).raw().toBuffer()),
    })
    expect(asked).toEqual([64])
    const small = await decode(jpeg, { ...options, quick: told, pixels_max: 100 })
    expect(small).toMatchObject({ problem: "size" })
    const turned = await decode(jpeg, { ...options, quick: told, auto_orient: true })
    expect(turned).toMatchObject({ width: 64 })
    const torn = await decode(jpeg.subarray(0, jpeg.length / 2), { ...options, quick: told })
    expect(torn).toMatchObject({ problem: "content" })
    expect(asked).toEqual([64, 64])
  })
})
