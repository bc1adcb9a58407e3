/** Random numbers by a seed, and smooth noise made of them: what drawn leaves differ by. */

/** Numbers from 0 to 1, the same of each seed (mulberry32: 32 bits of state, no cryptography). */
export type Random = () => number

const denominator = 2 ** 32

export const randomOf = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / denominator
  }
}

/** A seed of its own for the part of a whole that has this number. */
export const seedOf = (seed: number, part: number) => {
  const mixed = Math.imul((seed ^ Math.imul(part + 1, 0x9e3779b1)) | 0, 0x85ebca6b)
  return (mixed ^ (mixed >>> 15)) >>> 0
}

/** Between two bounds. */
export const within = (random: Random, low: number, high: number) => low + (high - low) * random()

/** A whole number from 0, less than `count`. */
export const upTo = (random: Random, count: number) => Math.floor(random() * count)

/** The numbers below `count` in a random order (Fisher and Yates). */
export const shuffled = (random: Random, count: number) => {
  const order = Uint32Array.from({ length: count }, (_, i) => i)
  for (let i = count - 1; i > 0; i--) {
    const j = upTo(random, i + 1)
    const kept = order[i] ?? 0
    order[i] = order[j] ?? 0
    order[j] = kept
  }
  return order
}

/** Smooth noise from 0 to 1 over a plane: about one hill in each square of side 1. */
export type Noise = (x: number, y: number) => number

/** Side of the square that the noise repeats after; a power of two. */
const period = 32
const mask = period - 1

export const noiseOf = (random: Random): Noise => {
  const heights = Float32Array.from({ length: period * period }, random)
  const at = (x: number, y: number) => heights[(y & mask) * period + (x & mask)] ?? 0
  return (x, y) => {
    const left = Math.floor(x)
    const top = Math.floor(y)
    const dx = x - left
    const dy = y - top
    const across = dx * dx * (3 - 2 * dx)
    const down = dy * dy * (3 - 2 * dy)
    const above = at(left, top) * (1 - across) + at(left + 1, top) * across
    const below = at(left, top + 1) * (1 - across) + at(left + 1, top + 1) * across
    return above * (1 - down) + below * down
  }
}

/** Noise of several sizes, each half as large and half as strong as the one before. */
export const cloud = (noise: Noise, x: number, y: number) =>
  (noise(x, y) * 4 + noise(x * 2 + 7, y * 2 + 3) * 2 + noise(x * 4 + 1, y * 4 + 9)) / 7
