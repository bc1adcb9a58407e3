/**
 * A JPEG or PNG as RGB pixels, as Pillow's `convert("RGB")` sees it. For threads: the settings of
 * the decoder below are the whole process's, and of decoders no more than these two remain.
 *
 * Source: document 3 §7 C; decisions, plant errors; plant facts 4; decision 0101.
 */
import sharp, { type Sharp } from "sharp"
import { causeText } from "#schemas/cause-text.ts"
import type { Pixels } from "../resample.ts"
import { jpegHead } from "./head.ts"
import { onceInProcess } from "./once.ts"
import { hasMoreScans, scansRead } from "./scans.ts"
import { typeOf } from "./type.ts"

export interface ImageOptions {
  readonly pixels_max: number
  /** Whether it is turned as its EXIF orientation says. */
  readonly auto_orient: boolean
}

/** What is wrong with an image: `type` is 415, `size` 413 and `content` 422. */
export interface ImageProblem {
  readonly problem: "type" | "size" | "content"
  readonly detail: string
}

/** The most that JPEG has; of a PNG too it bounds what a resize needs beside the pixels. */
export const image_side_max = 65_535
/** A photo of 12 megapixels takes a fiftieth of it. It is looked at when all scans are read. */
const decode_s_max = 10
const message_length_max = 200

onceInProcess(() => {
  // Whatever a file calls itself, no other format's code sees its bytes.
  sharp.block({ operation: ["VipsForeignLoad"] })
  sharp.unblock({ operation: ["VipsForeignLoadJpegBuffer", "VipsForeignLoadPngBuffer"] })
})
sharp.cache(false)
sharp.concurrency(1)

/** Smaller buffers are left to the collector. */
const kept_bytes_max = 2 ** 20

/**
 * Gives a large buffer's memory back now. A thread that waits for its next image collects nothing:
 * the pixels of its last one, 147 MB of 7000 by 7000, stayed for as long as it waited.
 */
export const giveBack = ({ buffer, byteLength }: Uint8Array) => {
  if (byteLength > kept_bytes_max && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** The image in full. Alpha is dropped, not blended; palettes and gray become RGB. */
export const decode = async (
  bytes: Uint8Array,
  options: ImageOptions,
): Promise<Pixels | ImageProblem> => {
  const opened = await open(bytes, options)
  return "problem" in opened ? opened : orProblem(() => pixelsOf(opened))
}

export interface Shrunk extends Pixels {
  /** Whether `rgb` is `side` by `side` already; `width` and `height` are the image's own always. */
  readonly is_small: boolean
}

/** An image that is to become smaller is made `side` by `side` in decoding, nearly bicubic. */
export const decodeFast = async (
  bytes: Uint8Array,
  options: ImageOptions,
  side: number,
): Promise<Shrunk | ImageProblem> => {
  const opened = await open(bytes, options)
  if ("problem" in opened) return opened
  const { head, width, height } = opened
  return orProblem(async () => {
    // The decoder enlarges from another middle than Pillow: half a pixel beside it.
    if (Math.min(width, height) < side) return { ...(await pixelsOf(opened)), is_small: false }
    const is_plain = !head.has_alpha && !head.is_cmyk
    // A resize with alpha would blend it: it is dropped first.
    const whole = is_plain ? undefined : await pixelsOf(opened)
    const small = (whole === undefined ? opened.image : imageOf(whole))
      .resize(side, side, { fit: "fill", kernel: "cubic", fastShrinkOnLoad: false })
      .toColourspace("srgb")
    const rgb = await small.raw().toBuffer()
    if (whole !== undefined) giveBack(whole.rgb)
    return { rgb, width, height, is_small: true }
  })
}

interface Head {
  readonly width: number
  readonly height: number
  readonly has_alpha: boolean
  readonly is_cmyk: boolean
  /** Of EXIF, 1 to 8: not known but where it counts. */
  readonly orientation: number
}

interface Opened {
  readonly image: Sharp
  readonly head: Head
  readonly width: number
  readonly height: number
}

/** Reads the head, and refuses by it. */
const open = async (
  bytes: Uint8Array,
  { pixels_max, auto_orient }: ImageOptions,
): Promise<Opened | ImageProblem> => {
  const type = typeOf(bytes)
  if (type === undefined) return { problem: "type", detail: "It is no JPEG and no PNG." }
  const read = (limitInputPixels: number | false) =>
    // A profile of colours is not applied, as Pillow does not; a warning is damage.
    sharp(bytes, { failOn: "warning", ignoreIcc: true, limitInputPixels })
  // Nothing is decoded for the head: it may say what it likes.
  const head = quickHead(bytes, auto_orient) ?? (await orProblem(() => slowHead(read(false))))
  if ("problem" in head) return head
  const [across, up] = [head.width, head.height]
  const size = `It has ${across} by ${up} pixels`
  if (across * up > pixels_max) {
    return { problem: "size", detail: `${size}; at most ${pixels_max} are taken.` }
  }
  if (Math.max(across, up) > image_side_max) {
    return { problem: "size", detail: `${size}; a side has at most ${image_side_max}.` }
  }
  const scans = scansRead(across * up)
  if (type === "JPEG" && hasMoreScans(bytes, scans)) {
    const detail = `It cannot be decoded: at most ${scans} scans are read at its size.`
    return { problem: "content", detail }
  }
  const image = read(pixels_max).timeout({ seconds: decode_s_max })
  const is_turned = auto_orient && head.orientation >= orientation_turned
  const [width, height] = is_turned ? [up, across] : [across, up]
  return { image: auto_orient ? image.autoOrient() : image, head, width, height }
}

/** Without the decoder; where it is wrong the decoder has its own limit, and the pixels tell. */
const quickHead = (bytes: Uint8Array, auto_orient: boolean): Head | undefined => {
  const size = auto_orient ? undefined : jpegHead(bytes)
  if (size === undefined) return undefined
  const { width, height } = size
  return { width, height, has_alpha: false, is_cmyk: false, orientation: 1 }
}

const slowHead = async (image: Sharp): Promise<Head> => {
  const { width, height, hasAlpha: has_alpha, space, orientation = 1 } = await image.metadata()
  return { width, height, has_alpha, is_cmyk: space === "cmyk", orientation }
}

/** EXIF orientations from here on lie on their side. */
const orientation_turned = 5

const imageOf = ({ rgb, width, height }: Pixels) =>
  sharp(rgb, { raw: { width, height, channels: 3 } })

const pixelsOf = async ({ image, head, width, height }: Opened): Promise<Pixels> => {
  if (head.is_cmyk) {
    const cmyk = await image.pipelineColourspace("cmyk").toColourspace("cmyk").raw().toBuffer()
    const rgb = fromCmyk(cmyk)
    giveBack(cmyk)
    return { rgb, width, height }
  }
  const rgb = await image.removeAlpha().toColourspace("srgb").raw().toBuffer()
  if (rgb.length !== width * height * 3) throw new Error("Its head says another size.")
  return { rgb, width, height }
}

/** Pillow's formula, without a profile of any ink. */
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

const orProblem = async <A>(run: () => Promise<A>): Promise<A | ImageProblem> => {
  try {
    return await run()
  } catch (error) {
    const [line = ""] = causeText(error).split("\n", 1)
    // Who asks has an image, and not the library that speaks here.
    const why = line.replaceAll(/\bVips\w*: /g, "").slice(0, message_length_max)
    return { problem: "content", detail: `It cannot be decoded: ${why}` }
  }
}
