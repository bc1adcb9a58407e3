/** Labelled training pictures, in memory or in a file, and their augmentation. */
import { type Random, upTo, within } from "./leaves/noise.ts"
import { trained_side } from "./network.ts"

/** Bytes of one picture: uint8[112, 112, 3]. */
export const picture_bytes = trained_side * trained_side * 3

export interface Pictures {
  readonly labels: Uint16Array
  /** The picture with this index; valid until the next call. */
  readonly at: (index: number) => Uint8Array
}

/** Pictures concatenated in memory. */
export const inMemory = (labels: Uint16Array, bytes: Uint8Array): Pictures => ({
  labels,
  at: (index) => bytes.subarray(index * picture_bytes, (index + 1) * picture_bytes),
})

/** Downscales uint8[224, 224, 3] to half its side: each pixel is the mean of four. */
export const halve = (full: Uint8Array) => {
  const bytes = new Uint8Array(picture_bytes)
  const row_bytes = trained_side * 2 * 3
  let to = 0
  for (let row = 0; row < trained_side; row++) {
    for (let column = 0; column < trained_side; column++) {
      const from = row * 2 * row_bytes + column * 6
      for (let c = from; c < from + 3; c++) {
        const above = (full[c] ?? 0) + (full[c + 3] ?? 0)
        const below = (full[c + row_bytes] ?? 0) + (full[c + row_bytes + 3] ?? 0)
        bytes[to++] = (above + below + 2) >> 2
      }
    }
  }
  return bytes
}

/** The source of a pixel after one of the eight rotations and reflections. */
const sourcePixel = (orientation: number, row: number, column: number) => {
  const last = trained_side - 1
  const y = (orientation & 1) === 0 ? row : last - row
  const x = (orientation & 2) === 0 ? column : last - column
  return (orientation & 4) === 0 ? y * trained_side + x : x * trained_side + y
}

/** Writes a picture scaled to 0 to 1. */
export const writeNormalized = (picture: Uint8Array, to: Float32Array, offset: number) => {
  for (let i = 0; i < picture_bytes; i++) to[offset + i] = (picture[i] ?? 0) / 255
}

/** Writes a picture scaled to 0 to 1, with a random orientation, brightness and tint. */
export const writeAugmented = (
  picture: Uint8Array,
  to: Float32Array,
  offset: number,
  random: Random,
) => {
  const orientation = upTo(random, 8)
  const light = within(random, 0.85, 1.15) / 255
  const [red, green, blue] = [0, 0, 0].map(() => light * within(random, 0.95, 1.05))
  let at = offset
  for (let row = 0; row < trained_side; row++) {
    for (let column = 0; column < trained_side; column++) {
      const from = sourcePixel(orientation, row, column) * 3
      to[at++] = Math.min(1, (picture[from] ?? 0) * (red ?? 0))
      to[at++] = Math.min(1, (picture[from + 1] ?? 0) * (green ?? 0))
      to[at++] = Math.min(1, (picture[from + 2] ?? 0) * (blue ?? 0))
    }
  }
}
