/**
 * The deadline of a shutdown: how long each part of the process may wait, so that all of them
 * together end in time, even if a part hangs. Without a shutdown each part has its own limit.
 *
 * Source: DECISIONS, address (requests get 8 s, exit code 0 within 10 s).
 */
import { Clock, Context, Effect } from "effect"

/** Time for requests and the work of workers, in milliseconds. */
export const work_ms = 8_000
/**
 * Time for everything, in milliseconds. Half a second is left to kill hung processes, and to exit.
 */
const whole_ms = 9_500

/** Each function returns the milliseconds to wait, at most `ms`. */
export interface StopDeadline {
  /** Starts the shutdown, or restarts its clock. */
  readonly begin: Effect.Effect<void>
  /** For work that continues during the shutdown. */
  readonly work: (ms: number) => Effect.Effect<number>
  /** For a part that is followed by others: half of the time left. */
  readonly part: (ms: number) => Effect.Effect<number>
  /** For the last part: all of the time left. */
  readonly rest: (ms: number) => Effect.Effect<number>
}

const own = (ms: number) => Effect.succeed(ms)

/** The deadline of the process. It has no limit unless `newStopDeadline` was provided. */
export const StopDeadline = Context.Reference<StopDeadline>("processes/StopDeadline", {
  defaultValue: () => ({ begin: Effect.void, work: own, part: own, rest: own }),
})

/** A deadline whose shutdown has not started. */
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
