/**
 * The simulated world: a clock that advances when no work is ready, a queue of timed events, and a
 * random generator. The same seed gives the same world.
 *
 * Code in it may use promises, but no real timers, threads or disks: between two events, all
 * promises that can continue have continued.
 */
import { createHash } from "node:crypto"
import { type Seeded, seeded } from "../../../../test/world/seeded.ts"

/** The world begins in November 2026, in milliseconds. */
const begin_ms = 1_795_000_000_000
export const ms_ns = 1_000_000n

/** Maximum number of events in a world, which detects endless loops. */
const events_max = 400_000
/** Maximum number of lines in the story. */
const story_lines_max = 400

interface Due {
  readonly ms: number
  /** Breaks ties between events of the same time. */
  readonly order: number
  run: (() => void) | undefined
}

/** A binary heap, earliest event first. */
const agenda = () => {
  const heap: Array<Due> = []
  const isBefore = (one: Due | undefined, other: Due | undefined) =>
    one !== undefined &&
    (other === undefined || one.ms < other.ms || (one.ms === other.ms && one.order < other.order))
  const swap = (one: number, other: number) => {
    const [first, second] = [heap[one], heap[other]]
    if (first === undefined || second === undefined) return
    heap[one] = second
    heap[other] = first
  }
  return {
    add: (due: Due) => {
      heap.push(due)
      for (let at = heap.length - 1; at > 0; ) {
        const above = (at - 1) >> 1
        if (!isBefore(heap[at], heap[above])) break
        swap(at, above)
        at = above
      }
    },
    take: () => {
      const first = heap[0]
      const last = heap.pop()
      if (first === undefined || last === undefined || heap.length === 0) return first
      heap[0] = last
      for (let at = 0; ; ) {
        const left = 2 * at + 1
        const child = isBefore(heap[left + 1], heap[left]) ? left + 1 : left
        if (!isBefore(heap[child], heap[at])) break
        swap(at, child)
        at = child
      }
      return first
    },
  }
}

/** Resolves when all promises that can continue have continued. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

export interface World {
  readonly seed: number
  readonly random: Seeded
  /** Milliseconds since the start of the world. */
  readonly ms: () => number
  /** The true time, in Unix nanoseconds. */
  readonly now: () => bigint
  /** Schedules work in this many milliseconds. The returned function cancels it. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>
  /** Advances the clock until the promise settles, and returns its result. */
  readonly until: <A>(work: Promise<A>) => Promise<A>
  /** Whether an event of this probability happens; counts it if it does. */
  readonly happens: (what: string, chance: number) => boolean
  readonly count: (what: string) => void
  readonly note: (line: string) => void
  /**
   * Reports a violation unless the invariant holds. Only the first one counts, and it ends the
   * world.
   */
  readonly check: (holds: boolean, what: string) => void
  readonly violation: () => string | undefined
  /** Ends all faults: from now on `happens` returns false. */
  readonly calm: () => void
  readonly isCalm: () => boolean
  readonly tally: ReadonlyMap<string, number>
  readonly story: () => ReadonlyArray<string>
  /** Equal for equal runs. */
  readonly fingerprint: () => string
  readonly events: () => number
}

const makeStory = (ms: () => number) => {
  const lines: Array<string> = []
  const chain = createHash("sha256")
  return {
    note: (line: string) => {
      const text = `${(ms() / 1000).toFixed(3)} ${line}`
      chain.update(text)
      lines.push(text)
      if (lines.length > story_lines_max) lines.shift()
    },
    story: () => [...lines],
    fingerprint: () => chain.copy().digest("hex"),
  }
}

export const makeWorld = (seed: number): World => {
  const random = seeded(seed)
  const due = agenda()
  const tally = new Map<string, number>()
  let ms = 0
  let order = 0
  let events = 0
  let is_calm = false
  let violation: string | undefined
  const { note, story, fingerprint } = makeStory(() => ms)
  const count = (what: string) => {
    tally.set(what, (tally.get(what) ?? 0) + 1)
  }
  const check = (holds: boolean, what: string) => {
    if (holds || violation !== undefined) return
    violation = `after ${(ms / 1000).toFixed(3)} s: ${what}`
    note(violation)
  }
  const after = (wait_ms: number, run: () => void) => {
    const entry: Due = { ms: ms + Math.max(0, wait_ms), order: order++, run }
    due.add(entry)
    return () => {
      entry.run = undefined
    }
  }
  /** Runs the next event; false if there is none. */
  const step = () => {
    for (;;) {
      const next = due.take()
      if (next === undefined) return false
      if (next.run === undefined) continue
      ms = next.ms
      events += 1
      check(events < events_max, `it does not come to rest in ${events_max} events`)
      next.run()
      return true
    }
  }
  return {
    ...{ seed, random, after, count, check, note, story, fingerprint, tally },
    ms: () => ms,
    now: () => BigInt(Math.floor((begin_ms + ms) * 1000)) * 1000n,
    pause: (wait_ms) => new Promise((resolve) => after(wait_ms, resolve)),
    until: async (work) => {
      let is_over = false
      const end = () => {
        is_over = true
      }
      work.then(end, end)
      await settled()
      while (!is_over && violation === undefined) {
        if (!step()) throw new Error(`seed ${seed}: nothing will ever happen any more`)
        await settled()
      }
      if (violation !== undefined) throw new Error(`seed ${seed}: ${violation}`)
      return work
    },
    happens: (what, chance) => {
      if (is_calm || random.next() >= chance) return false
      count(what)
      return true
    },
    violation: () => violation,
    calm: () => {
      is_calm = true
    },
    isCalm: () => is_calm,
    events: () => events,
  }
}
