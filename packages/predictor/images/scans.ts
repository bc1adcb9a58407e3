/**
 * The scans of a JPEG, counted before it is decoded: the decoder reads all of them before its time
 * is looked at, each over all blocks of the image, and a scan may have hardly a byte.
 *
 * Source: ITU T.81, B.1 and B.2; decision 0101.
 */

/** Encoders write about ten, and twenty at most. */
const scans_max = 100
/** Measured on a slow core: a pixel takes 0.5 to 3 ns in a scan, which makes 8 s at most. */
const scanned_pixels_max = 2_500_000_000

/** How many scans are read of an image of so many pixels: at least one. */
export const scansRead = (pixels: number): number =>
  Math.max(1, Math.min(scans_max, Math.floor(scanned_pixels_max / pixels)))

const marker_start = 0xff
/**
 * From here on markers have a segment, but restarts and the image's begin, which lie together.
 * Before it is the zero too that says of a byte of data that it begins no marker.
 */
const segment_first = 0xc0
const frame_baseline = 0xc0
const frame_extended = 0xc1
const restart_first = 0xd0
const begin = 0xd8
const end = 0xd9
const scan = 0xda

/**
 * Whether it has more scans than so many; what comes after those is not looked at. Goes from marker
 * to marker as the decoder does, over whatever is between them, and in time linear in the bytes.
 */
export const hasMoreScans = (bytes: Uint8Array, most: number): boolean => {
  let scans = 0
  /** Of a frame that is not progressive. */
  let components: number | undefined
  for (let at = markerFrom(bytes, 2); at < bytes.length; ) {
    const marker = bytes[at]
    if (marker === end) return false
    if (marker === frame_baseline || marker === frame_extended) components = bytes[at + 8]
    if (marker === scan) {
      scans++
      if (scans > most) return true
      // One scan that has everything is all that the decoder reads: most photos end here.
      if (scans === 1 && (bytes[at + 3] ?? 0) === components) return false
    }
    at = markerFrom(bytes, at + 1 + segmentLength(bytes, at))
  }
  return false
}

/** Where the next marker's second byte is, from this place on; beyond the bytes without one. */
const markerFrom = (bytes: Uint8Array, from: number): number => {
  let at = bytes[from] === marker_start ? from : bytes.indexOf(marker_start, from)
  if (at < 0) return bytes.length
  while (bytes[at] === marker_start) at++
  return at
}

/** Of what belongs to a marker, with the two bytes that say it. */
const segmentLength = (bytes: Uint8Array, at: number): number => {
  const marker = bytes[at] ?? 0
  const is_alone = marker < segment_first || (marker >= restart_first && marker <= begin)
  return is_alone ? 0 : ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
}
