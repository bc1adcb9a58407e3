/** The memory-efficient collections of an import: bit sets, lists of pairs, sorted batches. */
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"

export interface BitSet {
  readonly has: (value: number) => boolean
  readonly add: (value: number) => void
}

const bits = 8

/** A set of integers from 0 to `max`, one bit each: 12.5 MB for all dockets. */
export const bitSet = (max: number): BitSet => {
  const bytes = new Uint8Array(Math.floor(max / bits) + 1)
  return {
    has: (value) => ((bytes[value >> 3] ?? 0) & (1 << (value & 7))) !== 0,
    add: (value) => {
      bytes[value >> 3] = (bytes[value >> 3] ?? 0) | (1 << (value & 7))
    },
  }
}

/** Pairs of numbers below 2^32, eight bytes each, in insertion order. */
export const pairList = () => {
  let pairs = new Uint32Array(2 ** 16)
  let length = 0
  return {
    add: (one: number, other: number) => {
      if (length === pairs.length) {
        const longer = new Uint32Array(pairs.length * 2)
        longer.set(pairs)
        pairs = longer
      }
      pairs[length++] = one
      pairs[length++] = other
    },
    each: (visit: (one: number, other: number) => void) => {
      for (let at = 0; at < length; at += 2) visit(pairs[at] ?? 0, pairs[at + 1] ?? 0)
    },
  }
}

/** Rows per batch. Twice as many need 80 MB more and save a tenth of the time. */
const rows_max = 2 ** 16

/**
 * Passes rows to `put` in batches that are sorted by docket, stable within a docket. Unsorted
 * inserts take SQLite three times as long.
 */
export const batched = (put: (mc: number, other: number, name: string) => void) => {
  // A docket has 27 bits and an index 16: together they fit into a double's 53.
  const keys = new Float64Array(rows_max)
  const others = new Uint32Array(rows_max)
  const names: Array<string> = []
  const flush = () => {
    for (const key of keys.subarray(0, names.length).sort()) {
      const index = key % rows_max
      put((key - index) / rows_max, others[index] ?? 0, names[index] ?? "")
    }
    names.length = 0
  }
  return {
    add: (mc: number, other: number, name: string) => {
      keys[names.length] = mc * rows_max + names.length
      others[names.length] = other
      names.push(name)
      if (names.length === rows_max) flush()
    },
    flush,
  }
}

/** A set of dockets. */
export const docketSet = (): BitSet => bitSet(mc_number_max)
