/** Backoff for repeated failures: pauses grow, and fewer failures are logged. */
import { Clock, Effect } from "effect"

/** The first pause, in milliseconds. */
const pause_ms_min = 500

/**
 * The longest pause, in milliseconds: a third of the time for which tokens are trusted without the
 * log.
 */
const pause_ms_max = 10_000

/** The count restarts after this long without a failure, in milliseconds. */
const rest_ms = 60_000

/** A failure in a series. The 1st, 2nd, 4th, 8th and so on are logged. */
export interface Backoff {
  readonly is_logged: boolean
  /** For log messages: the number of consecutive failures, if it is more than one. */
  readonly times: string
  /** Pause before the next attempt, in milliseconds. */
  readonly pause_ms: number
}

/** Counts failures of one kind; run the effect at each failure. */
export const newBackoff = () => {
  let count = 0
  let last_ms = Number.NEGATIVE_INFINITY
  return Effect.map(Clock.currentTimeMillis, (now_ms): Backoff => {
    if (now_ms - last_ms >= rest_ms) count = 0
    last_ms = now_ms
    count++
    return {
      is_logged: Number.isInteger(Math.log2(count)),
      times: count === 1 ? "" : ` (${count} times in a row)`,
      pause_ms: Math.min(pause_ms_min * 2 ** (count - 1), pause_ms_max),
    }
  })
}
