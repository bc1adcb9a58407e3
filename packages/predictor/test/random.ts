/** Seeded integers: the result draws one from 0 to below `limit`. */
export const random = (seed: number) => {
  let state = seed >>> 0
  return (limit: number): number => {
    // Mulberry32.
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}
