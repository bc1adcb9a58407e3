/** Seeded random numbers, and smooth noise. */

/** Numbers from 0 to 1, reproducible by seed (mulberry32, not cryptographic). */
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

/** Derives a seed for a numbered part. */
export const seedOf = (seed: number, part: number) => {
  const mixed = Math.imul((seed ^ Math.imul(part + 1, 0x9e3779b1)) | 0, 0x85ebca6b)
  return (mixed ^ (mixed >>> 15)) >>> 0
}

/** A random number between two bounds. */
export const within = (random: Random, low: number, high: number) => low + (high - low) * random()

/** A random integer from 0, less than `count`. */
export const upTo = (random: Random, count: number) => Math.floor(random() * count)

/** The integers below `count` in random order (Fisher-Yates). */
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

/** Smooth noise from 0 to 1, with about one maximum per unit square. */
export type Noise = (x: number, y: number) => number

/** The period of the noise; a power of two. */
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

/** Fractal noise: three octaves, each with half the amplitude of the previous one. */
export const cloud = (noise: Noise, x: number, y: number) =>
  (noise(x, y) * 4 + noise(x * 2 + 7, y * 2 + 3) * 2 + noise(x * 4 + 1, y * 4 + 9)) / 7
