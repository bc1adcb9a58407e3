/** An agenda: scheduled items by owner, returned in the order of their times. */

export interface Entry<Item> {
  /** Epoch milliseconds. */
  readonly at: number
  readonly item: Item
}

interface Queued<Item> extends Entry<Item> {
  is_stale: boolean
}

export interface Agenda<Item> {
  /** Replaces all entries of `owner`. */
  readonly set: (owner: string, entries: ReadonlyArray<Entry<Item>>) => void
  /** Items due at `now`, earliest first, and the next entry's time. Items stay until replaced. */
  readonly due: (now: number) => { readonly now: ReadonlyArray<Item>; readonly next?: number }
}

/** Stale entries that a heap may hold in addition to as many as it has live ones. */
const stale_max = 64

/**
 * A binary heap by time. A replaced entry is marked as stale and stays in the heap until it
 * surfaces or stale entries outnumber live ones: every commit may replace entries due in days.
 */
const make = <Item>(): Agenda<Item> => {
  let heap: Array<Queued<Item>> = []
  let stale_count = 0
  const owned = new Map<string, ReadonlyArray<Queued<Item>>>()
  let due_items: Array<Queued<Item>> = []

  const before = (a: number, b: number) => (heap[a]?.at ?? Infinity) < (heap[b]?.at ?? Infinity)
  const swap = (a: number, b: number) => {
    const [one, other] = [heap[a], heap[b]]
    if (one && other) [heap[a], heap[b]] = [other, one]
  }
  const push = (entry: Queued<Item>) => {
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
    const others = heap.filter((entry) => !entry.is_stale)
    heap = []
    stale_count = 0
    for (const entry of others) push(entry)
  }

  return {
    set: (owner, entries) => {
      for (const entry of owned.get(owner) ?? []) {
        entry.is_stale = true
        stale_count++
      }
      const kept = entries.map((entry) => ({ ...entry, is_stale: false }))
      if (kept.length === 0) owned.delete(owner)
      else owned.set(owner, kept)
      for (const entry of kept) push(entry)
      if (stale_count > heap.length / 2 + stale_max) sweep()
    },
    due: (now) => {
      due_items = due_items.filter(({ is_stale }) => !is_stale)
      for (let first = heap[0]; first && (first.is_stale || first.at <= now); first = heap[0]) {
        pop()
        if (first.is_stale) stale_count--
        else due_items.push(first)
      }
      const next = heap[0]?.at
      return { now: due_items.map(({ item }) => item), ...(next === undefined ? {} : { next }) }
    },
  }
}

export const Agenda = { make }
