/**
 * Reads the pixel count of an image from its header, before decoding.
 *
 * Source: PNG, 11.2.2 IHDR; ITU T.81, B.1 and B.2.
 */

/** A PNG's first chunk is its header: signature, length, type, then width and height. */
const png_width_at = 16
const png_head_bytes = 24
const png_first = 0x89

const marker_start = 0xff
const frame_first = 0xc0
const frame_last = 0xcf
/** Tables and a reserved marker in the range of frame markers: DHT, JPG, DAC. */
const no_frame = new Set([0xc4, 0xc8, 0xcc])
/** Start of a scan, after which no header follows. */
const scan = 0xda

/** The size of a JPEG's first frame; 0 if the header is truncated or has none. */
const jpegPixels = (view: DataView): number => {
  let at = 2
  while (at + 9 <= view.byteLength) {
    const marker = view.getUint8(at + 1)
    if (view.getUint8(at) !== marker_start || marker === scan) return 0
    const is_frame = marker >= frame_first && marker <= frame_last && !no_frame.has(marker)
    if (is_frame) return view.getUint16(at + 5) * view.getUint16(at + 7)
    // Fill bytes may precede a marker.
    at += marker === marker_start ? 1 : 2 + view.getUint16(at + 2)
  }
  return 0
}

/** 0 for other formats and images without a size, which the decoder rejects. */
export const pixelsOf = (image: Uint8Array): number => {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  if (image[0] !== png_first) return jpegPixels(view)
  if (view.byteLength < png_head_bytes) return 0
  return view.getUint32(png_width_at) * view.getUint32(png_width_at + 4)
}
