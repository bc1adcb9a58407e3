/** Pseudorandom numbers, deterministic in the seed: mulberry32. */
export const seeded = (seed: number) => {
  let state = seed >>> 0
  /** In [0, 1). */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    /** An integer from `first` to `last`, inclusive. */
    between: (first: number, last: number) => first + Math.floor(next() * (last - first + 1)),
    /** An element of a nonempty list. */
    pick: <A>(list: readonly [A, ...ReadonlyArray<A>]): A =>
      list[Math.floor(next() * list.length)] ?? list[0],
  }
}

export type Seeded = ReturnType<typeof seeded>
