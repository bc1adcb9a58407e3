/**
 * Records a feed's data in the log: the changed values together with the ingest itself, so that
 * every folder with values of a metric records whether they are generated.
 *
 * Source: decisions of document 3, dashboard storage.
 */
import { Clock, DateTime, Effect, Result } from "effect"
import { v7 } from "uuid"
import { Feed } from "#actors/capital-pressure/feed.ts"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import { type Addressed, address, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import { stateAfter } from "#actors/host.ts"
import { Log } from "#events/log.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import { RecordFeedFailure, RecordIngest } from "#schemas/capital-pressure/feed.ts"
import type { Rejection } from "#schemas/capital-pressure/rejection.ts"

/** Aggregates loaded concurrently. */
const loads_at_once = 32

/** Maximum number of streams per write in addition to the feed's own; the log accepts 100. */
const streams_max = 99

const actor = "verb:ingest"

/** Commands to distinct aggregates, and the newest day in them. */
export interface FeedData {
  readonly commands: ReadonlyArray<Addressed<Rejection>>
  readonly newest: number | undefined
}

/** Numbers of new and of revised values. */
export interface FeedCounts {
  readonly observed: number
  readonly revised: number
  /** Newest date in the data; null without data. */
  readonly newest: string | null
}

/** Decides a command without sending it; returns the types of its events. */
const eventsOf = Effect.fnUntraced(function* (addressed: Addressed<Rejection>) {
  const { to, command } = addressed
  const log = yield* Log
  const last = yield* log.load(streamOf(addressed))
  const state = last === undefined ? to.initialState : yield* stateAfter(log, to, last)
  const decided = to.decide(state, command)
  if (Result.isFailure(decided)) return yield* new FeedFailed({ detail: decided.failure.detail })
  return { addressed, types: decided.success.map(({ type }) => type) }
})

/** Records the feeds of one ingest, with one time and one correlation id. */
export const feedRecorder = Effect.fnUntraced(function* (demo: boolean) {
  const commands = yield* Commands
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const correlation_id = v7()
  let position = 0

  const send = (...addressed: ReadonlyArray<Addressed<Rejection>>) =>
    commands.send({ command_id: v7(), actor, at, correlation_id }, ...addressed).pipe(
      Effect.tap((reached) =>
        Effect.sync(() => {
          position = Math.max(position, reached)
        }),
      ),
      Effect.mapError((failure) =>
        failure instanceof Unavailable ? failure : new FeedFailed({ detail: failure.detail }),
      ),
    )

  /** Sends the commands that change anything, except the rest that fits the feed's own write. */
  const sendChanges = Effect.fnUntraced(function* ({ commands, newest }: FeedData) {
    const decided_commands = yield* Effect.forEach(commands, eventsOf, {
      concurrency: loads_at_once,
    })
    const changing = decided_commands.filter(({ types }) => types.length > 0)
    const types = changing.flatMap(({ types }) => types)
    const revised = types.filter((type) => /Re(vised|quoted)$/.test(type)).length
    const addressed = changing.map(({ addressed }) => addressed)
    let sent = 0
    for (; addressed.length - sent > streams_max; sent += streams_max) {
      yield* send(...addressed.slice(sent, sent + streams_max))
    }
    const counts: FeedCounts = {
      observed: types.length - revised,
      revised,
      newest: newest === undefined ? null : dateOf(newest),
    }
    return { counts, rest: addressed.slice(sent) }
  })

  return {
    /** Records data without an ingest of a feed. */
    record: Effect.fnUntraced(function* (data: FeedData) {
      const { counts, rest } = yield* sendChanges(data)
      if (rest.length > 0) yield* send(...rest)
      return counts
    }),
    /** Records data and the feed's ingest. */
    recordIngest: Effect.fnUntraced(function* (feed: string, data: FeedData) {
      const { counts, rest } = yield* sendChanges(data)
      yield* send(...rest, address(Feed, feed, RecordIngest.make({ at, ...counts, demo })))
      return counts
    }),
    /** Records a feed's ingest of data that is already in the log. */
    recordTotals: (feed: string, counts: FeedCounts) =>
      send(address(Feed, feed, RecordIngest.make({ at, ...counts, demo }))),
    /** Records that a feed could not be read. */
    recordFailure: (feed: string, detail: string) =>
      send(address(Feed, feed, RecordFeedFailure.make({ at, detail }))),
    /** Log position of the last write. */
    position: () => position,
  }
})

export type FeedRecorder = Effect.Success<ReturnType<typeof feedRecorder>>
