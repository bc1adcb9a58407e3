/** Numbers that look random and are the same for the same seed: mulberry32. */
export const seeded = (seed: number) => {
  let state = seed >>> 0
  /** From 0 up to, but not including, 1. */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    /** An integer from `first` to `last`, both included. */
    between: (first: number, last: number) => first + Math.floor(next() * (last - first + 1)),
    /** One of a list that has one or more. */
    pick: <A>(list: readonly [A, ...ReadonlyArray<A>]): A =>
      list[Math.floor(next() * list.length)] ?? list[0],
  }
}

export type Seeded = ReturnType<typeof seeded>
