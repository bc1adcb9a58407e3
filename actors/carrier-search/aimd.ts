/**
 * Limits concurrent lookups by additive increase and multiplicative decrease: one more after every
 * 50 good responses, half as many when the registry is busy or slows down. Pure; times are clock
 * milliseconds.
 *
 * Source: market facts B2; docs/decisions/0091-range-engine.md.
 */

export interface Aimd {
  /** Maximum number of concurrent lookups, between 1 and `cap`. */
  readonly limit: number
  readonly cap: number
  /** Good responses since the limit last changed. */
  readonly good: number
  /** Good responses since the last bad one. */
  readonly since_bad: number
  /** Number of good responses in the current sample, and the slowest of them, fastest first. */
  readonly sampled: number
  readonly slowest_ms: ReadonlyArray<number>
  /** The usual p95; null until it is known. */
  readonly usual_ms: number | null
  /** When the limit was last halved: lookups that began earlier carry no new information. */
  readonly halved_at: number
}

export interface Outcome {
  readonly began: number
  readonly now: number
  /** refused: the registry asks for fewer requests (429). */
  readonly answer: "good" | "busy" | "refused"
}

export const aimd = (cap: number): Aimd => ({
  limit: cap,
  cap,
  good: 0,
  since_bad: good_before_accident,
  sampled: 0,
  slowest_ms: [],
  usual_ms: null,
  halved_at: -1,
})

const good_per_step = 50
/**
 * After this many good responses, a single bad one is noise, which every registry has; otherwise it
 * indicates load.
 */
const good_before_accident = 19
/** Responses per sample. The p95 is the fastest of its six slowest. */
const sample = 100
const slowest_max = 6
/** Smaller differences are noise from this machine. */
const slower_ms_min = 50
/** Weight of a new p95 in the usual one. */
const newest_share = 0.2

export const adapt = (state: Aimd, outcome: Outcome): Aimd =>
  outcome.answer === "good" ? onGood(state, outcome) : onBusy(state, outcome)

const onBusy = (state: Aimd, { began, now, answer }: Outcome): Aimd => {
  // Part of a burst that has already halved the limit.
  if (began <= state.halved_at) return state
  const is_accident = answer === "busy" && state.since_bad >= good_before_accident
  return is_accident ? { ...state, since_bad: 0 } : halved(state, now)
}

const onGood = (state: Aimd, { began, now }: Outcome): Aimd => {
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
  // The doubled time becomes the usual one, so a permanently slower registry halves the limit once.
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
  since_bad: good_before_accident,
  sampled: 0,
  slowest_ms: [],
  halved_at: now,
})

const slowest = (known: ReadonlyArray<number>, ms: number) => {
  if (known.length === slowest_max && ms <= (known[0] ?? 0)) return known
  return [...known, ms].toSorted((a, b) => a - b).slice(-slowest_max)
}
