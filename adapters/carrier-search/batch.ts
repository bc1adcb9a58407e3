/** What an import of carriers holds in memory: numbers in bits, pairs in words, rows in batches. */
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"

export interface BitSet {
  readonly has: (value: number) => boolean
  readonly add: (value: number) => void
}

const bits = 8

/** A set of whole numbers from 0 to `max`, a bit each: 12.5 MB for all dockets. */
export const bitSet = (max: number): BitSet => {
  const bytes = new Uint8Array(Math.floor(max / bits) + 1)
  return {
    has: (value) => ((bytes[value >> 3] ?? 0) & (1 << (value & 7))) !== 0,
    add: (value) => {
      bytes[value >> 3] = (bytes[value >> 3] ?? 0) | (1 << (value & 7))
    },
  }
}

/** Pairs of numbers below 2^32, eight bytes each, in the order in which they were added. */
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

/** Rows that are put together. Measured: twice of it holds 80 MB more for a tenth less time. */
const rows_max = 2 ** 16

/**
 * Rows of a docket, another number and a name are put in the order of their dockets, a batch at a
 * time, and those of one docket as they came. One at a time, in no order, they take SQLite three
 * times as long.
 */
export const batched = (put: (mc: number, other: number, name: string) => void) => {
  // A docket has 27 bits, and a place 16: together they are exact in a number of 53.
  const keys = new Float64Array(rows_max)
  const others = new Uint32Array(rows_max)
  const names: Array<string> = []
  const flush = () => {
    for (const key of keys.subarray(0, names.length).sort()) {
      const place = key % rows_max
      put((key - place) / rows_max, others[place] ?? 0, names[place] ?? "")
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

/** Dockets, by their numbers. */
export const docketSet = (): BitSet => bitSet(mc_number_max)
