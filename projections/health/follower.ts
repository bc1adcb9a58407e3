/** Lag of a follower of the log in seconds, and whether the follower is stuck. */
import { Clock, Effect, Stream } from "effect"
import { Log, type Part } from "#events/log.ts"

/** A read model, or the publisher. */
export interface Follower {
  /** The part of the log it follows. */
  readonly part: Part
  /** The last commit it processed; undefined if it does not run in this process. */
  readonly position: Effect.Effect<number | undefined>
  /** Why it waits at this position; undefined if it does not wait. */
  readonly waits: () => string | undefined
}

const ms_per_s = 1000

/**
 * Longest time without progress before a follower with pending work counts as stuck, in seconds.
 */
const standing_s_max = 10

/** This check does not report a log that is slower than this, because commands report it. */
const answer_max = "1 second"

/** How long a lagging follower is watched for progress, in milliseconds. */
const watch_ms = 250

/** Age in seconds of the oldest commit of a part after this position; 0 if there is none. */
export const lagSeconds = Effect.fnUntraced(function* (part: Part, position: number) {
  const log = yield* Log
  if ((yield* log.head(part)) <= position) return 0
  const [first] = yield* Stream.runCollect(Stream.take(log.read(part, position), 1))
  if (first === undefined) return 0
  const waited_ms = (yield* Clock.currentTimeMillis) - Date.parse(first.commit.at)
  return Math.max(0, waited_ms / ms_per_s)
})

/**
 * Why a follower is stuck: its lag in seconds and what it waits for. Undefined if it is idle or
 * makes progress, however far behind, and if the log is unreachable.
 */
export const standstill = ({ part, position, waits }: Follower) =>
  Effect.gen(function* () {
    const before = yield* position
    if (before === undefined) return undefined
    const lag_s = yield* lagSeconds(part, before)
    if (lag_s <= standing_s_max) return undefined
    yield* Effect.sleep(watch_ms)
    if ((yield* position) !== before) return undefined
    const why = waits()
    return `${Math.round(lag_s)} s behind the log at position ${before}${why ? `: ${why}` : ""}`
  }).pipe(
    Effect.timeoutOrElse({ duration: answer_max, orElse: () => Effect.undefined }),
    Effect.catchCause(() => Effect.undefined),
  )
