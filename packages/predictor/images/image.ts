/**
 * Decodes JPEG and PNG to RGB pixels like Pillow's `convert("RGB")`. The decoder's settings below
 * apply to the whole process: all other formats are blocked.
 *
 * Source: document 3 §7 C; decisions, plant errors; plant facts 4; decision 0101.
 */
import sharp, { type Sharp } from "sharp"
import { causeText } from "#schemas/cause-text.ts"
import type { Pixels } from "../resample.ts"
import { jpegSize } from "./jpeg-size.ts"
import { onceInProcess } from "./once-in-process.ts"
import { hasMoreScans, scansAllowed } from "./scans.ts"
import { typeOf } from "./type.ts"

export interface ImageOptions {
  readonly pixels_max: number
  /** Whether to apply the EXIF orientation. */
  readonly auto_orient: boolean
}

/** Why an image is rejected: `type` is 415, `size` 413 and `content` 422. */
export interface ImageProblem {
  readonly problem: "type" | "size" | "content"
  readonly detail: string
}

/** JPEG's limit. For PNG it bounds the memory of a resize without the pixels. */
export const image_side_max = 65_535
/** A photo of 12 megapixels needs a fiftieth. Checked only after all scans have been read. */
const decode_s_max = 10
const message_length_max = 200

onceInProcess(() => {
  // A file with another format's signature must not reach that format's decoder.
  sharp.block({ operation: ["VipsForeignLoad"] })
  sharp.unblock({ operation: ["VipsForeignLoadJpegBuffer", "VipsForeignLoadPngBuffer"] })
})
sharp.cache(false)
sharp.concurrency(1)

/** Smaller buffers are left to the garbage collector. */
const kept_bytes_max = 2 ** 16

/**
 * Frees a large buffer immediately. An idle thread does not collect garbage: the pixels of its last
 * image, 147 MB for 7000 by 7000, stayed until the next one.
 */
export const releaseBuffer = ({ buffer, byteLength }: Uint8Array) => {
  if (byteLength > kept_bytes_max && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** Decodes at full size. Alpha is dropped, not blended; palettes and grayscale become RGB. */
export const decode = async (
  bytes: Uint8Array,
  options: ImageOptions,
): Promise<Pixels | ImageProblem> => {
  const opened = await open(bytes, options)
  return "problem" in opened ? opened : catchProblem(() => readPixels(opened))
}

export interface Shrunk extends Pixels {
  /** Whether `rgb` is `side` by `side`. `width` and `height` are always the original size. */
  readonly is_small: boolean
}

/** Decodes and downscales to `side` by `side` in one step, with nearly bicubic results. */
export const decodeFast = async (
  bytes: Uint8Array,
  options: ImageOptions,
  side: number,
): Promise<Shrunk | ImageProblem> => {
  const opened = await open(bytes, options)
  if ("problem" in opened) return opened
  const { header, width, height } = opened
  return catchProblem(async () => {
    // The decoder's enlargement is shifted by half a pixel from Pillow's.
    if (Math.min(width, height) < side) return { ...(await readPixels(opened)), is_small: false }
    const is_plain = !header.has_alpha && !header.is_cmyk
    // A resize would blend alpha, so it is dropped first.
    const whole = is_plain ? undefined : await readPixels(opened)
    const small = (whole === undefined ? opened.image : imageOf(whole))
      .resize(side, side, { fit: "fill", kernel: "cubic", fastShrinkOnLoad: false })
      .toColourspace("srgb")
    const rgb = await small.raw().toBuffer()
    if (whole !== undefined) releaseBuffer(whole.rgb)
    return { rgb, width, height, is_small: true }
  })
}

interface ImageHeader {
  readonly width: number
  readonly height: number
  readonly has_alpha: boolean
  readonly is_cmyk: boolean
  /** EXIF orientation, 1 to 8; read only if it is applied. */
  readonly orientation: number
}

interface Opened {
  readonly image: Sharp
  readonly header: ImageHeader
  readonly width: number
  readonly height: number
}

/** Reads the header and checks its limits. */
const open = async (
  bytes: Uint8Array,
  { pixels_max, auto_orient }: ImageOptions,
): Promise<Opened | ImageProblem> => {
  const type = typeOf(bytes)
  if (type === undefined) return { problem: "type", detail: "It is neither a JPEG nor a PNG." }
  const read = (limitInputPixels: number | false) =>
    // As in Pillow, colour profiles are not applied. A warning means damage.
    sharp(bytes, { failOn: "warning", ignoreIcc: true, limitInputPixels })
  // No pixels are decoded for the header, so it has no limit.
  const header =
    quickHeader(bytes, auto_orient) ?? (await catchProblem(() => decoderHeader(read(false))))
  if ("problem" in header) return header
  const [columns, rows] = [header.width, header.height]
  const size = `It has ${columns} by ${rows} pixels`
  if (columns * rows > pixels_max) {
    return { problem: "size", detail: `${size}; the maximum is ${pixels_max}.` }
  }
  if (Math.max(columns, rows) > image_side_max) {
    return { problem: "size", detail: `${size}; the maximum for a side is ${image_side_max}.` }
  }
  const scans = scansAllowed(columns * rows)
  if (type === "JPEG" && hasMoreScans(bytes, scans)) {
    const detail = `It cannot be decoded: at its size, at most ${scans} scans are allowed.`
    return { problem: "content", detail }
  }
  const image = read(pixels_max).timeout({ seconds: decode_s_max })
  const is_turned = auto_orient && header.orientation >= orientation_turned
  const [width, height] = is_turned ? [rows, columns] : [columns, rows]
  return { image: auto_orient ? image.autoOrient() : image, header, width, height }
}

/** Without the decoder. The decoder's own limit and the number of pixels catch a wrong size. */
const quickHeader = (bytes: Uint8Array, auto_orient: boolean): ImageHeader | undefined => {
  const size = auto_orient ? undefined : jpegSize(bytes)
  if (size === undefined) return undefined
  const { width, height } = size
  return { width, height, has_alpha: false, is_cmyk: false, orientation: 1 }
}

const decoderHeader = async (image: Sharp): Promise<ImageHeader> => {
  const { width, height, hasAlpha: has_alpha, space, orientation = 1 } = await image.metadata()
  return { width, height, has_alpha, is_cmyk: space === "cmyk", orientation }
}

/** EXIF orientations from here on swap width and height. */
const orientation_turned = 5

const imageOf = ({ rgb, width, height }: Pixels) =>
  sharp(rgb, { raw: { width, height, channels: 3 } })

const readPixels = async ({ image, header, width, height }: Opened): Promise<Pixels> => {
  if (header.is_cmyk) {
    const cmyk = await image.pipelineColourspace("cmyk").toColourspace("cmyk").raw().toBuffer()
    const rgb = fromCmyk(cmyk)
    releaseBuffer(cmyk)
    return { rgb, width, height }
  }
  const rgb = await image.removeAlpha().toColourspace("srgb").raw().toBuffer()
  if (rgb.length !== width * height * 3) throw new Error("Its header has another size.")
  return { rgb, width, height }
}

/** Pillow's formula, without an ink profile. */
const fromCmyk = (cmyk: Uint8Array): Uint8Array => {
  const rgb = new Uint8Array((cmyk.length / 4) * 3)
  for (let from = 0, to = 0; from < cmyk.length; from += 4) {
    const light = 255 - (cmyk[from + 3] ?? 0)
    for (let colour = 0; colour < 3; colour++) {
      const product = (cmyk[from + colour] ?? 0) * light + 128
      rgb[to++] = Math.max(0, light - (((product >> 8) + product) >> 8))
    }
  }
  return rgb
}

const catchProblem = async <A>(run: () => Promise<A>): Promise<A | ImageProblem> => {
  try {
    return await run()
  } catch (error) {
    const [line = ""] = causeText(error).split("\n", 1)
    // Strip the library's prefix: the message is shown to clients.
    const why = line.replaceAll(/\bVips\w*: /g, "").slice(0, message_length_max)
    return { problem: "content", detail: `It cannot be decoded: ${why}` }
  }
}
