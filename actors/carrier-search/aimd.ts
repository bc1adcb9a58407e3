/**
 * How many questions may be under way at once: one more after each 50 good answers, half as many
 * when the registry says that it is busy or becomes slow. Pure; times are of the clock, in ms.
 *
 * Source: market facts B2; docs/decisions/0091-range-engine.md.
 */

export interface Aimd {
  /** At most so many at once; between 1 and `cap`. */
  readonly limit: number
  readonly cap: number
  /** Good answers since the limit last changed. */
  readonly good: number
  /** Good answers since the last one that was not. */
  readonly since_bad: number
  /** Good answers whose time was looked at, and the slowest of them, the fastest first. */
  readonly sampled: number
  readonly slowest_ms: ReadonlyArray<number>
  /** The p95 that is usual; null until it is known. */
  readonly usual_ms: number | null
  /** When it was last halved: what began before says nothing new. */
  readonly halved_at: number
}

export interface Heard {
  readonly began: number
  readonly now: number
  /** refused: the registry itself asks for less (429). */
  readonly answer: "good" | "busy" | "refused"
}

export const aimd = (cap: number): Aimd => ({
  limit: cap,
  cap,
  good: 0,
  since_bad: alone_min,
  sampled: 0,
  slowest_ms: [],
  usual_ms: null,
  halved_at: -1,
})

const good_per_step = 50
/** One bad answer after so many good ones is an accident, as every registry has them; else load. */
const alone_min = 19
/** Answers whose p95 is looked at together: the fastest of the six slowest. */
const sample = 100
const slowest_max = 6
/** Less is this machine's own unrest. */
const slower_ms_min = 50
/** How much a new p95 counts in what is usual. */
const newest_share = 0.2

export const heed = (state: Aimd, heard: Heard): Aimd =>
  heard.answer === "good" ? onGood(state, heard) : onBusy(state, heard)

const onBusy = (state: Aimd, { began, now, answer }: Heard): Aimd => {
  // It belongs to a burst that was heeded already.
  if (began <= state.halved_at) return state
  const is_accident = answer === "busy" && state.since_bad >= alone_min
  return is_accident ? { ...state, since_bad: 0 } : halved(state, now)
}

const onGood = (state: Aimd, { began, now }: Heard): Aimd => {
  const is_step = state.good + 1 >= good_per_step
  const limit = Math.min(state.cap, state.limit + (is_step ? 1 : 0))
  const good = is_step ? 0 : state.good + 1
  const grown = { ...state, limit, good, since_bad: state.since_bad + 1 }
  if (began <= state.halved_at) return grown
  const slowest_ms = slowest(state.slowest_ms, now - began)
  const sampled = state.sampled + 1
  if (sampled < sample) return { ...grown, sampled, slowest_ms }
  const slow_ms = slowest_ms[0] ?? 0
  const usual_ms = state.usual_ms ?? slow_ms
  // A registry that stays slow is not asked ever less: what doubled is usual from then on.
  if (slow_ms > 2 * usual_ms && slow_ms - usual_ms >= slower_ms_min) {
    return { ...halved(grown, now), usual_ms: slow_ms }
  }
  const next_ms = usual_ms + newest_share * (slow_ms - usual_ms)
  return { ...grown, sampled: 0, slowest_ms: [], usual_ms: next_ms }
}

const halved = (state: Aimd, now: number): Aimd => ({
  ...state,
  limit: Math.max(1, Math.floor(state.limit / 2)),
  good: 0,
  since_bad: alone_min,
  sampled: 0,
  slowest_ms: [],
  halved_at: now,
})

const slowest = (known: ReadonlyArray<number>, ms: number) => {
  if (known.length === slowest_max && ms <= (known[0] ?? 0)) return known
  return [...known, ms].toSorted((a, b) => a - b).slice(-slowest_max)
}
