/** An agenda: what is due when, by owner. The earliest comes first, whatever the number. */

export interface Entry<What> {
  /** Epoch milliseconds. */
  readonly at: number
  readonly what: What
}

interface Kept<What> extends Entry<What> {
  gone: boolean
}

export interface Agenda<What> {
  /** Puts these entries in the place of all that `owner` had. */
  readonly set: (owner: string, entries: ReadonlyArray<Entry<What>>) => void
  /** What is due at `now`, earliest first, and when the next entry is. It stays until set anew. */
  readonly due: (now: number) => { readonly now: ReadonlyArray<What>; readonly next?: number }
}

/** Replaced entries that may stay in a heap, beside as many as there are others. */
const gone_max = 64

/**
 * A binary heap by time. An entry that was replaced stays in it, marked, until it surfaces, or
 * until there are more of those than of others: what is due in days may be set at each commit.
 */
const make = <What>(): Agenda<What> => {
  let heap: Array<Kept<What>> = []
  let gone = 0
  const owned = new Map<string, ReadonlyArray<Kept<What>>>()
  let ripe: Array<Kept<What>> = []

  const before = (a: number, b: number) => (heap[a]?.at ?? Infinity) < (heap[b]?.at ?? Infinity)
  const swap = (a: number, b: number) => {
    const [one, other] = [heap[a], heap[b]]
    if (one && other) [heap[a], heap[b]] = [other, one]
  }
  const push = (entry: Kept<What>) => {
    let at = heap.push(entry) - 1
    for (let up = (at - 1) >> 1; at > 0 && before(at, up); at = up, up = (at - 1) >> 1) swap(at, up)
  }
  const pop = () => {
    swap(0, heap.length - 1)
    const first = heap.pop()
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      const least = before(right, left) ? right : left
      if (!before(least, at)) return first
      swap(at, least)
      at = least
    }
  }

  const sweep = () => {
    const others = heap.filter((entry) => !entry.gone)
    heap = []
    gone = 0
    for (const entry of others) push(entry)
  }

  return {
    set: (owner, entries) => {
      for (const entry of owned.get(owner) ?? []) {
        entry.gone = true
        gone++
      }
      const kept = entries.map((entry) => ({ ...entry, gone: false }))
      if (kept.length === 0) owned.delete(owner)
      else owned.set(owner, kept)
      for (const entry of kept) push(entry)
      if (gone > heap.length / 2 + gone_max) sweep()
    },
    due: (now) => {
      ripe = ripe.filter(({ gone }) => !gone)
      for (let first = heap[0]; first && (first.gone || first.at <= now); first = heap[0]) {
        pop()
        if (first.gone) gone--
        else ripe.push(first)
      }
      const next = heap[0]?.at
      return { now: ripe.map(({ what }) => what), ...(next === undefined ? {} : { next }) }
    },
  }
}

export const Agenda = { make }
