/**
 * How long the parts of a process may wait while it stops: whatever hangs, all of them together end
 * in time. Without a stop that has begun each has the time of its own.
 *
 * Source: DECISIONS, address (requests get 8 s, exit code 0 within 10 s).
 */
import { Clock, Context, Effect } from "effect"

/** Milliseconds that requests get, and what workers do. */
export const work_ms = 8_000
/** Milliseconds for everything; half a second is left to kill what hangs, and for the process. */
const whole_ms = 9_500

/** Each answers how many milliseconds somebody may wait who would wait `ms` at most. */
export interface StopDeadline {
  /** The stop begins; from a second time on it begins anew. */
  readonly begin: Effect.Effect<void>
  /** For work that goes on since the stop began. */
  readonly work: (ms: number) => Effect.Effect<number>
  /** For a farewell: half of what is left, since others come after. */
  readonly part: (ms: number) => Effect.Effect<number>
  /** For the last. */
  readonly rest: (ms: number) => Effect.Effect<number>
}

const own = (ms: number) => Effect.succeed(ms)

/** That of the process; there is none but where `newStopDeadline` was given. */
export const StopDeadline = Context.Reference<StopDeadline>("processes/StopDeadline", {
  defaultValue: () => ({ begin: Effect.void, work: own, part: own, rest: own }),
})

/** One that has not begun. */
export const newStopDeadline = (): StopDeadline => {
  let began_ms: number | undefined
  const left = (of_ms: number) =>
    Effect.map(now, (at_ms) => Math.max(0, (began_ms ?? Infinity) + of_ms - at_ms))
  const within = (of_ms: number, share: number) => (ms: number) =>
    Effect.map(left(of_ms), (left_ms) => Math.min(ms, left_ms * share))
  return {
    begin: Effect.map(now, (at_ms) => {
      began_ms = at_ms
    }),
    work: within(work_ms, 1),
    part: within(whole_ms, 1 / 2),
    rest: within(whole_ms, 1),
  }
}

const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1_000_000)
