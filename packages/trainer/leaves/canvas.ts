/** A square RGB canvas with floating-point channels of 0 to 255. */
import { type Random, within } from "./noise.ts"

export type Colour = readonly [red: number, green: number, blue: number]

export interface Canvas {
  /** Pixels on a side. */
  readonly side: number
  /** Row by row, three values per pixel. */
  readonly rgb: Float32Array
}

export const canvasOf = (side: number): Canvas => ({
  side,
  rgb: new Float32Array(side * side * 3),
})

/** Blends a colour into the pixel at offset `at`; `strength` is the opacity. */
export const dye = (rgb: Float32Array, at: number, colour: Colour, strength: number) => {
  rgb[at] = (rgb[at] ?? 0) * (1 - strength) + colour[0] * strength
  rgb[at + 1] = (rgb[at + 1] ?? 0) * (1 - strength) + colour[1] * strength
  rgb[at + 2] = (rgb[at + 2] ?? 0) * (1 - strength) + colour[2] * strength
}

/** Makes a pixel lighter or darker. */
export const shade = (rgb: Float32Array, at: number, factor: number) => {
  rgb[at] = (rgb[at] ?? 0) * factor
  rgb[at + 1] = (rgb[at + 1] ?? 0) * factor
  rgb[at + 2] = (rgb[at + 2] ?? 0) * factor
}

/** Paints the pixel at x and y, each -1 to 1, by calling `put` with colours. */
export type Brush = (x: number, y: number, put: (colour: Colour, strength?: number) => void) => void

/** Applies a brush to every pixel. */
export const cover = ({ side, rgb }: Canvas, brush: Brush) => {
  let at = 0
  const put = (colour: Colour, strength = 1) => dye(rgb, at, colour, strength)
  for (let row = 0; row < side; row++) {
    const y = ((row + 0.5) / side) * 2 - 1
    for (let column = 0; column < side; column++) {
      brush(((column + 0.5) / side) * 2 - 1, y, put)
      at += 3
    }
  }
}

/** The share of a random colour's variation that is independent per channel. */
const own_share = 0.3

/** A random colour between two, varying mostly in brightness and a little in hue. */
export const between = (random: Random, low: Colour, high: Colour): Colour => {
  const along = random() * (1 - own_share)
  const mixed = (from: number, to: number) => from + (to - from) * (along + own_share * random())
  return [mixed(low[0], high[0]), mixed(low[1], high[1]), mixed(low[2], high[2])]
}

/** Any colour. */
export const anyColour = (random: Random): Colour => [
  random() * 255,
  random() * 255,
  random() * 255,
]

const byte = (value: number) => Math.min(255, Math.max(0, value))

/**
 * Simulates a camera: uneven light, brightness, white balance and grain. Returns
 * uint8[side, side, 3].
 */
export const develop = ({ side, rgb }: Canvas, random: Random) => {
  const from_left = within(random, -0.3, 0.3)
  const from_top = within(random, -0.3, 0.3)
  const bright = within(random, 0.78, 1.18)
  const warm = within(random, 0.93, 1.07)
  const grain = within(random, 2, 14)
  const bytes = new Uint8Array(side * side * 3)
  // A linear congruential generator is fast and good enough for grain.
  let state = Math.floor(random() * 2 ** 31) | 1
  let at = 0
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
      const light = bright * (1 + from_left * (column / side - 0.5) + from_top * (row / side - 0.5))
      const speck = (state / 2 ** 31) * grain
      bytes[at] = byte((rgb[at] ?? 0) * light * warm + speck)
      bytes[at + 1] = byte((rgb[at + 1] ?? 0) * light + speck)
      bytes[at + 2] = byte(((rgb[at + 2] ?? 0) * light) / warm + speck)
      at += 3
    }
  }
  return bytes
}
