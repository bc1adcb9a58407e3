/**
 * Counts the scans of a JPEG before it is decoded. The decoder checks its deadline only after all
 * scans, each of which visits every block of the image, and a scan may be a few bytes.
 *
 * Source: ITU T.81, B.1 and B.2; decision 0101.
 */

/** Encoders write about ten, at most twenty. */
const scans_max = 100
/** On a slow core a pixel of a scan takes 0.5 to 3 ns, so at most 8 s. */
const scanned_pixels_max = 2_500_000_000

/** The number of scans allowed for an image of this size, at least one. */
export const scansAllowed = (pixels: number): number =>
  Math.max(1, Math.min(scans_max, Math.floor(scanned_pixels_max / pixels)))

const marker_start = 0xff
/**
 * From here on, markers have a segment, except restarts and the start of image. Smaller values
 * include the zero that escapes a data byte of FF.
 */
const segment_first = 0xc0
const frame_baseline = 0xc0
const frame_extended = 0xc1
const restart_first = 0xd0
const begin = 0xd8
const end = 0xd9
const scan = 0xda

/**
 * Whether there are more than `limit` scans; stops at the first one too many. Skips from marker to
 * marker like the decoder, in linear time.
 */
export const hasMoreScans = (bytes: Uint8Array, limit: number): boolean => {
  let scans = 0
  /** For frames that are not progressive. */
  let components: number | undefined
  for (let at = nextMarker(bytes, 2); at < bytes.length; ) {
    const marker = bytes[at]
    if (marker === end) return false
    if (marker === frame_baseline || marker === frame_extended) components = bytes[at + 8]
    if (marker === scan) {
      scans++
      if (scans > limit) return true
      // The decoder stops after a scan with all components. Most photos have only that.
      if (scans === 1 && (bytes[at + 3] ?? 0) === components) return false
    }
    at = nextMarker(bytes, at + 1 + segmentLength(bytes, at))
  }
  return false
}

/** The offset of the next marker's second byte; the length if there is none. */
const nextMarker = (bytes: Uint8Array, from: number): number => {
  let at = bytes[from] === marker_start ? from : bytes.indexOf(marker_start, from)
  if (at < 0) return bytes.length
  while (bytes[at] === marker_start) at++
  return at
}

/** The length of a marker's segment, including its two length bytes. */
const segmentLength = (bytes: Uint8Array, at: number): number => {
  const marker = bytes[at] ?? 0
  const is_alone = marker < segment_first || (marker >= restart_first && marker <= begin)
  return is_alone ? 0 : ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
}
