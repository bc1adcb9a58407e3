/**
 * Reads the size of a common JPEG from its header. The decoder needs a fifth of the time of
 * decoding a small image for this; it is used only for uncommon files.
 *
 * Source: ITU T.81, B.1 and B.2.
 */

export interface JpegSize {
  readonly width: number
  readonly height: number
}

const marker_start = 0xff
/** SOF0 to SOF2: Huffman-coded frames, baseline, extended or progressive. */
const frame_first = 0xc0
const frame_last = 0xc2
const huffman_tables = 0xc4
/** From here on, segments do not describe pixels, with the exceptions below. */
const table_first = 0xdb
/** Start and end of image, start of scan. */
const no_segment = new Set([0xd8, 0xd9, 0xda, 0xdc])

const word = (bytes: Uint8Array, at: number) => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

/** For grayscale and three components of 8 bits; undefined for anything else. */
export const jpegSize = (bytes: Uint8Array): JpegSize | undefined => {
  let at = 2
  while (at + 9 < bytes.length) {
    if (bytes[at] !== marker_start) return undefined
    const marker = bytes[at + 1] ?? 0
    if (marker >= frame_first && marker <= frame_last) return frameSize(bytes, at + 4)
    const is_segment =
      marker === huffman_tables ||
      (marker >= table_first && marker !== marker_start && !no_segment.has(marker))
    const length = word(bytes, at + 2)
    if (!is_segment || length < 2) return undefined
    at += 2 + length
  }
  return undefined
}

const frameSize = (bytes: Uint8Array, at: number): JpegSize | undefined => {
  const [height, width, components] = [word(bytes, at + 1), word(bytes, at + 3), bytes[at + 5]]
  const is_common = bytes[at] === 8 && (components === 1 || components === 3)
  if (!is_common || width === 0 || height === 0) return undefined
  return { width, height }
}
