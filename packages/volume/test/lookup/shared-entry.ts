/** Entries of an index that is changed while others look: what may be found of each. */

import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Place } from "../../lookup/map.ts"

/** Spread over the first bits, as hashes are. */
export const idOf = (number: number) => {
  const first = (Math.imul(number, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0")
  // Thirty-two digits in hex are an identifier.
  return `${first}${number.toString(16).padStart(24, "0")}` as BlobId
}

/** Every word of it is another with each version. */
export const placeOf = (number: number, version = 0): Place => ({
  file: 1 + version,
  position: 8 * (number + version),
  bytes: number + version,
  kind: "blob",
  is_large: false,
})

/** Entries that are set once and stay. */
export const lasting = (number: number) => number % 2 === 0

/** Whether a place is one that the entry had, as a whole. */
export const isPlaceOf = (number: number, { file, position, bytes }: Place) => {
  const version = file - 1
  const is_whole = position === 8 * (number + version) && bytes === number + version
  return is_whole && (version === 0 || !lasting(number))
}
