/** Pictures with the class of each: what a training reads, wherever they come from. */
import { type Random, upTo, within } from "./leaves/noise.ts"
import { trained_side } from "./network.ts"

/** Bytes of one picture: uint8[112, 112, 3]. */
export const picture_bytes = trained_side * trained_side * 3

export interface Pictures {
  readonly labels: Uint16Array
  /** Copies the picture of this index into its place; it is valid until the next call. */
  readonly at: (index: number) => Uint8Array
}

/** Pictures that are in memory one after the other. */
export const inMemory = (labels: Uint16Array, bytes: Uint8Array): Pictures => ({
  labels,
  at: (index) => bytes.subarray(index * picture_bytes, (index + 1) * picture_bytes),
})

/** uint8[224, 224, 3] at half its side: each pixel the mean of four. */
export const halved = (full: Uint8Array) => {
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

/** Where a picture's pixel comes from that is turned and mirrored, one of eight ways. */
const turned = (way: number, row: number, column: number) => {
  const last = trained_side - 1
  const y = (way & 1) === 0 ? row : last - row
  const x = (way & 2) === 0 ? column : last - column
  return (way & 4) === 0 ? y * trained_side + x : x * trained_side + y
}

/** Writes a picture as 0 to 1, as it is. */
export const writePlain = (picture: Uint8Array, to: Float32Array, offset: number) => {
  for (let i = 0; i < picture_bytes; i++) to[offset + i] = (picture[i] ?? 0) / 255
}

/** Writes a picture as 0 to 1, turned, mirrored and lit as chance has it. */
export const writeVaried = (
  picture: Uint8Array,
  to: Float32Array,
  offset: number,
  random: Random,
) => {
  const way = upTo(random, 8)
  const light = within(random, 0.85, 1.15) / 255
  const [red, green, blue] = [0, 0, 0].map(() => light * within(random, 0.95, 1.05))
  let at = offset
  for (let row = 0; row < trained_side; row++) {
    for (let column = 0; column < trained_side; column++) {
      const from = turned(way, row, column) * 3
      to[at++] = Math.min(1, (picture[from] ?? 0) * (red ?? 0))
      to[at++] = Math.min(1, (picture[from + 1] ?? 0) * (green ?? 0))
      to[at++] = Math.min(1, (picture[from + 2] ?? 0) * (blue ?? 0))
    }
  }
}
