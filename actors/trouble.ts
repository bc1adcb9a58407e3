/** Trouble that lasts: each time the pause before the next attempt grows, and fewer are told. */
import { Clock, Effect } from "effect"

/** The first pause, in milliseconds. */
const pause_ms_min = 500

/** The longest, in milliseconds: a third of what tokens are trusted without the log. */
const pause_ms_max = 10_000

/** After so long without it, trouble is another one, in milliseconds. */
const rest_ms = 60_000

/** What came in a row: the first, the second, the fourth, the eighth are told. */
export interface Troubled {
  readonly is_told: boolean
  /** For what is told: how often it came, where that is more than once. */
  readonly times: string
  /** Before the next attempt, in milliseconds. */
  readonly pause_ms: number
}

/** Counts one kind of trouble; the effect is run when it has come. */
export const newTrouble = () => {
  let count = 0
  let last_ms = Number.NEGATIVE_INFINITY
  return Effect.map(Clock.currentTimeMillis, (now_ms): Troubled => {
    if (now_ms - last_ms >= rest_ms) count = 0
    last_ms = now_ms
    count++
    return {
      is_told: Number.isInteger(Math.log2(count)),
      times: count === 1 ? "" : ` (${count} times in a row)`,
      pause_ms: Math.min(pause_ms_min * 2 ** (count - 1), pause_ms_max),
    }
  })
}
