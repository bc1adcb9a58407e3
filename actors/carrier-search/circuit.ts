/**
 * Whether the registry is asked at all: not after it failed finally, or 20 times on end. Then one
 * question at a time tries it, the first at once, the next ones after ever longer pauses. Pure;
 * times are of the clock, in ms.
 *
 * Source: market facts B2; docs/decisions/0091-range-engine.md.
 */

interface Closed {
  readonly state: "closed"
  /** Failures on end. */
  readonly failures: number
  /** When the last one was counted: of those that were under way together one counts. */
  readonly counted_at: number
}

interface Open {
  readonly state: "open"
  /** Why, for a person. */
  readonly reason: string
  /** Trials that failed since. */
  readonly trials: number
  /** When the next trial may begin. */
  readonly trial_at: number
  readonly is_trying: boolean
}

export type Circuit = Closed | Open

/** With what a question is let in. */
export type Pass = "free" | "trial"

/** later: when the trial that is under way has ended. */
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

/** A question wants to begin. */
export const admit = (circuit: Circuit, now: number): readonly [Admission, Circuit] => {
  if (circuit.state === "closed") return ["free", circuit]
  if (circuit.is_trying) return ["later", circuit]
  if (now < circuit.trial_at) return ["no", circuit]
  return ["trial", { ...circuit, is_trying: true }]
}

/** A question that was let in was answered. */
export const succeeded = (circuit: Circuit, pass: Pass): Circuit => {
  // What began before it opened says nothing of what is so now.
  if (circuit.state === "open") return pass === "trial" ? closed : circuit
  return circuit.failures === 0 ? circuit : closed
}

/** A question that was let in was not answered. */
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

/** A question that was let in was given up. */
export const abandoned = (circuit: Circuit, pass: Pass): Circuit =>
  circuit.state === "open" && pass === "trial" ? { ...circuit, is_trying: false } : circuit
