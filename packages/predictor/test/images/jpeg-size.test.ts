/** The JPEG size reader agrees with the decoder or returns nothing. */
import sharp, { type JpegOptions } from "sharp"
import { describe, expect, it } from "vitest"
import { decode } from "../../images/image.ts"
import { jpegSize } from "../../images/jpeg-size.ts"
import { random } from "../random.ts"

const seed = 20_261_123
const image = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: { r: 90, g: 140, b: 60 } } })

const kinds: ReadonlyArray<readonly [string, JpegOptions]> = [
  ["baseline", {}],
  ["progressive", { progressive: true }],
  ["with optimised tables", { optimiseCoding: true, trellisQuantisation: true }],
  ["without subsampling", { chromaSubsampling: "4:4:4" }],
]

describe("the size of a JPEG", () => {
  it.each(kinds)("that is %s is read", async (_name, options) => {
    for (const [width, height] of [
      [1, 1],
      [300, 7],
      [9, 40_000],
    ] as const) {
      const bytes = await image(width, height).jpeg(options).toBuffer()
      expect(jpegSize(bytes)).toEqual({ width, height })
    }
  })

  it("is read from grayscale files and with EXIF, a profile and a comment", async () => {
    const gray = await image(31, 17).greyscale().jpeg().toBuffer()
    expect(jpegSize(gray)).toEqual({ width: 31, height: 17 })
    const result = await image(31, 17).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    expect(jpegSize(result)).toEqual({ width: 31, height: 17 })
    const comment = Buffer.from([0xff, 0xfe, 0, 4, 0xff, 0xc0])
    const commented = Buffer.concat([gray.subarray(0, 2), comment, gray.subarray(2)])
    expect(jpegSize(commented)).toEqual({ width: 31, height: 17 })
  })

  it("is left to the decoder for uncommon files", async () => {
    const jpeg = await image(31, 17).jpeg().toBuffer()
    const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
    const changed = (at: number, byte: number) => {
      const other = Buffer.from(jpeg)
      other[at] = byte
      return other
    }
    expect(jpegSize(await image(31, 17).toColourspace("cmyk").jpeg().toBuffer())).toBeUndefined()
    expect(jpegSize(await image(31, 17).png().toBuffer())).toBeUndefined()
    // Arithmetic codes, 12 bits, no height, two components, no marker, a segment of no length.
    expect(jpegSize(changed(frame + 1, 0xc9))).toBeUndefined()
    expect(jpegSize(changed(frame + 4, 12))).toBeUndefined()
    expect(jpegSize(changed(frame + 6, 0))).toBeUndefined()
    expect(jpegSize(changed(frame + 9, 2))).toBeUndefined()
    expect(jpegSize(changed(frame, 0))).toBeUndefined()
    expect(jpegSize(Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0, ...Array(20).fill(0)]))).toBe(
      undefined,
    )
    for (let length = 0; length < frame; length++) {
      expect(jpegSize(jpeg.subarray(0, length))).toBeUndefined()
    }
  })

  it(`is never wrong for damaged files (seed ${seed})`, async () => {
    const next = random(seed)
    const jpeg = await image(40, 30).jpeg().toBuffer()
    const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
    let taken = 0
    for (let n = 0; n < 150; n++) {
      const damaged = Buffer.from(jpeg)
      damaged[2 + next(frame + 10)] = next(256)
      const decoded = await decode(damaged, { pixels_max: 1_000_000, auto_orient: false })
      if ("problem" in decoded) continue
      taken++
      const { width, height } = await sharp(damaged).metadata()
      expect([decoded.width, decoded.height]).toEqual([width, height])
      expect(decoded.rgb.length).toBe(width * height * 3)
    }
    expect(taken).toBeGreaterThan(10)
  })
})
