/**
 * The circuit breaker of the registry. It opens after a final failure or 20 consecutive failures.
 * One trial at a time then tests the registry: the first at once, further ones after growing
 * pauses. Pure; times are clock milliseconds.
 *
 * Source: market facts B2; docs/decisions/0091-range-engine.md.
 */

interface Closed {
  readonly state: "closed"
  /** Consecutive failures. */
  readonly failures: number
  /** When the last failure was counted; concurrent failures count once. */
  readonly counted_at: number
}

interface Open {
  readonly state: "open"
  /** The reason, for people. */
  readonly reason: string
  /** Failed trials since it opened. */
  readonly trials: number
  /** Earliest start of the next trial. */
  readonly trial_at: number
  readonly is_trying: boolean
}

export type Circuit = Closed | Open

/** How a lookup was admitted. */
export type Pass = "free" | "trial"

/** later: after the current trial has ended. */
export type Admission = Pass | "later" | "no"

export interface Failure {
  readonly is_final: boolean
  readonly reason: string
  readonly began: number
  readonly now: number
}

export const closed: Closed = { state: "closed", failures: 0, counted_at: -1 }

const failures_max = 20
const pause_ms = 1000
const pause_ms_max = 30_000

/** Requests admission for a lookup. */
export const admit = (circuit: Circuit, now: number): readonly [Admission, Circuit] => {
  if (circuit.state === "closed") return ["free", circuit]
  if (circuit.is_trying) return ["later", circuit]
  if (now < circuit.trial_at) return ["no", circuit]
  return ["trial", { ...circuit, is_trying: true }]
}

/** An admitted lookup succeeded. */
export const succeeded = (circuit: Circuit, pass: Pass): Circuit => {
  // Lookups from before it opened say nothing about the registry's current state.
  if (circuit.state === "open") return pass === "trial" ? closed : circuit
  return circuit.failures === 0 ? circuit : closed
}

/** An admitted lookup failed. */
export const failed = (circuit: Circuit, pass: Pass, failure: Failure): Circuit => {
  const { is_final, reason, began, now } = failure
  if (circuit.state === "open") {
    if (pass !== "trial") return circuit
    const rest_ms = Math.min(pause_ms_max, pause_ms * 2 ** circuit.trials)
    const trials = circuit.trials + 1
    return { ...circuit, reason, trials, trial_at: now + rest_ms, is_trying: false }
  }
  const is_counted = began > circuit.counted_at
  const failures = circuit.failures + (is_counted ? 1 : 0)
  if (is_final || failures >= failures_max) {
    return { state: "open", reason, trials: 0, trial_at: now, is_trying: false }
  }
  return is_counted ? { state: "closed", failures, counted_at: now } : circuit
}

/** An admitted lookup was interrupted. */
export const abandoned = (circuit: Circuit, pass: Pass): Circuit =>
  circuit.state === "open" && pass === "trial" ? { ...circuit, is_trying: false } : circuit
