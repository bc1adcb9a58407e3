import { deflateSync } from "node:zlib"
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import { decode, decodeFast } from "../../images/image.ts"
import { typeOf } from "../../images/type.ts"
import { resampler } from "../../resample.ts"
import { random } from "../random.ts"

const options = { pixels_max: 50_000_000, auto_orient: false }

/** Smooth like a photo. */
const photo = (width: number, height: number) =>
  Uint8Array.from({ length: width * height * 3 }, (_, n) => {
    const [x, y] = [Math.floor(n / 3) % width, Math.floor(n / 3 / width)]
    return 128 + 100 * Math.sin(x / 9 + (n % 3)) * Math.cos(y / 7)
  })
const encoded = (width: number, height: number) =>
  sharp(photo(width, height), { raw: { width, height, channels: 3 } })
const jpeg = await encoded(120, 90).jpeg().toBuffer()
const progressive = await encoded(120, 90).jpeg({ progressive: true }).toBuffer()
const png = await encoded(120, 90).png().toBuffer()

const refused = async (bytes: Uint8Array, change: Partial<typeof options> = {}) => {
  const decoded = await decode(bytes, { ...options, ...change })
  return "problem" in decoded ? decoded.problem : "taken"
}

const crc_table = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})
const crc = (bytes: Uint8Array) =>
  (bytes.reduce((sum, one) => (crc_table[(sum ^ one) & 255] ?? 0) ^ (sum >>> 8), ~0) ^ ~0) >>> 0
const chunk = (name: string, body: Uint8Array) => {
  const named = Buffer.concat([Buffer.from(name), body])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length)
  sum.writeUInt32BE(crc(named))
  return Buffer.concat([length, named, sum])
}
/** A black PNG of one bit per pixel: a side of 30,000 takes 110 kB. */
const blackPng = (width: number, height: number) => {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head[8] = 1
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height))
  const signature = png.subarray(0, 8)
  const parts = [chunk("IHDR", head), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))]
  return Buffer.concat([signature, ...parts])
}

describe("an image's type", () => {
  it("is JPEG by FF D8 FF and PNG by its signature", () => {
    expect([typeOf(jpeg), typeOf(png)]).toEqual(["JPEG", "PNG"])
    for (const length of [0, 1, 2]) expect(typeOf(jpeg.subarray(0, length))).toBeUndefined()
    for (const length of [3, 7]) expect(typeOf(png.subarray(0, length))).toBeUndefined()
  })

  it("is nothing else: SVG, GIF, WebP, TIFF and text are rejected", async () => {
    const others = [
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      Buffer.from("GIF89a"),
      await encoded(9, 9).webp().toBuffer(),
      await encoded(9, 9).tiff().toBuffer(),
      Buffer.from("no image at all"),
      Buffer.alloc(0),
    ]
    for (const bytes of others) expect(await refused(bytes)).toBe("type")
  })

  it("lets no other decoder read bytes with a JPEG signature", async () => {
    const webp = await encoded(9, 9).webp().toBuffer()
    expect(await refused(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), webp]))).toBe("content")
    await expect(sharp(webp).metadata()).rejects.toThrow(/unsupported image format/)
  })
})

describe("an image's size", () => {
  it("is read from its header: a bomb of 900 megapixels is rejected at once", async () => {
    const bomb = blackPng(30_000, 30_000)
    expect(bomb.length).toBeLessThan(120_000)
    const before = process.memoryUsage.rss()
    expect(await refused(bomb)).toBe("size")
    expect(process.memoryUsage.rss() - before).toBeLessThan(50 * 2 ** 20)
  })

  it("may be exactly the limit", async () => {
    expect(await refused(png, { pixels_max: 120 * 90 })).toBe("taken")
    expect(await refused(png, { pixels_max: 120 * 90 - 1 })).toBe("size")
    expect(await refused(jpeg, { pixels_max: 120 * 90 - 1 })).toBe("size")
  })

  it("is at most 65,535 pixels per side", async () => {
    expect(await refused(blackPng(65_535, 1))).toBe("taken")
    expect(await refused(blackPng(65_536, 1))).toBe("size")
  })
})

describe("an image's content", () => {
  it.each([
    ["JPEG", jpeg],
    ["progressive JPEG", progressive],
    ["PNG", png],
  ])("of a %s that ends early is refused, wherever it ends", async (_name, bytes) => {
    const places = Array.from({ length: 20 }, (_, n) => Math.floor(((n + 1) * bytes.length) / 21))
    // The end marker is not needed; Pillow does not require it either.
    for (const place of [9, ...places]) {
      expect(await refused(bytes.subarray(0, place))).toBe("content")
    }
  })

  it("with flipped bytes is rejected or decoded, and never crashes the process", async () => {
    const next = random(5)
    const outcomes = new Set<string>()
    for (let n = 0; n < 120; n++) {
      const damaged = Buffer.from(n % 2 === 0 ? jpeg : png)
      for (let flips = 0; flips < 20; flips++) {
        const place = 10 + next(damaged.length - 10)
        damaged[place] = (damaged[place] ?? 0) ^ (1 + next(255))
      }
      outcomes.add(await refused(damaged))
    }
    expect(outcomes).toContain("content")
    for (const outcome of outcomes) expect(["content", "size", "taken"]).toContain(outcome)
  })

  it("is reported in one line", async () => {
    const decoded = await decode(jpeg.subarray(0, 400), options)
    expect(decoded).toMatchObject({ problem: "content" })
    expect("detail" in decoded ? decoded.detail : "").toMatch(
      /^It cannot be decoded: (?!.*Vips)[^\n]+$/,
    )
  })
})

describe("fast decoding", () => {
  const side = 224
  const meanDifference = (one: Uint8Array, other: Uint8Array) =>
    one.reduce((sum, value, n) => sum + Math.abs(value - (other[n] ?? 0)), 0) / one.length

  const small = async (bytes: Uint8Array, auto_orient = false) => {
    const fast = await decodeFast(bytes, { ...options, auto_orient }, side)
    const exact = await decode(bytes, { ...options, auto_orient })
    if ("problem" in fast || "problem" in exact) throw new Error("not decoded")
    expect([fast.width, fast.height]).toEqual([exact.width, exact.height])
    expect(fast.is_small).toBe(true)
    return meanDifference(fast.rgb, resampler(side)(exact, "bicubic"))
  }

  it("differs by less than one level on average", async () => {
    expect(await small(await encoded(800, 600).jpeg().toBuffer())).toBeLessThan(1)
    expect(await small(await encoded(300, 240).png().toBuffer())).toBeLessThan(1)
  })

  it("does not resize an image that is too small", async () => {
    const tall = await decodeFast(await encoded(223, 900).jpeg().toBuffer(), options, side)
    expect(tall).toMatchObject({ is_small: false, width: 223, height: 900 })
    expect("rgb" in tall && tall.rgb.length).toBe(223 * 900 * 3)
  })

  it("converts alpha, grayscale and CMYK like exact decoding", async () => {
    const next = random(8)
    const rgba = photo(300, 400)
    const alpha = { width: 300, height: 300, channels: 4 } as const
    const seen = Buffer.from(rgba.subarray(0, 300 * 300 * 4)).map((byte, n) =>
      n % 4 === 3 ? next(256) : byte,
    )
    expect(await small(await sharp(seen, { raw: alpha }).png().toBuffer())).toBeLessThan(3)
    const cmyk = await encoded(300, 240).toColourspace("cmyk").jpeg().toBuffer()
    expect(await small(cmyk)).toBeLessThan(1)
    expect(await small(await encoded(300, 240).grayscale().jpeg().toBuffer())).toBeLessThan(1)
  })

  it("applies EXIF orientation only if configured", async () => {
    const lying = await encoded(300, 240).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    expect(await small(lying)).toBeLessThan(1)
    expect(await small(lying, true)).toBeLessThan(1)
    const sizes = await Promise.all(
      [false, true].map((auto_orient) => decodeFast(lying, { ...options, auto_orient }, side)),
    )
    expect(sizes).toMatchObject([
      { width: 300, height: 240 },
      { width: 240, height: 300 },
    ])
  })
})
