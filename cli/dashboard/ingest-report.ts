/**
 * What a feed tells, on its way into the log: what of it is news, and that it was told.
 *
 * Both happen together, so that a folder that holds anything of a metric says whether that is
 * generated. Source: decisions of document 3, dashboard storage.
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

/** Aggregates that are looked at together. */
const loads_at_once = 32

/** Streams of one write of the log, which takes 100, without the feed's own. */
const streams_max = 99

const actor = "verb:ingest"

/** Commands of whatever aggregates, each of another, and the newest day that they tell of. */
export interface Telling {
  readonly commands: ReadonlyArray<Addressed<Rejection>>
  readonly newest: number | undefined
}

/** What of it was not known, and what was known otherwise. */
export interface Told {
  readonly observed: number
  readonly revised: number
  /** The newest date that was told; null where none was. */
  readonly newest: string | null
}

/** An aggregate's command with what it would make happen now. */
const newsOf = Effect.fnUntraced(function* (asked: Addressed<Rejection>) {
  const { to, command } = asked
  const log = yield* Log
  const last = yield* log.load(streamOf(asked))
  const state = last === undefined ? to.initialState : yield* stateAfter(log, to, last)
  const decided = to.decide(state, command)
  if (Result.isFailure(decided)) return yield* new FeedFailed({ detail: decided.failure.detail })
  return { asked, types: decided.success.map(({ type }) => type) }
})

/** Tells the log of feeds, all in one ingest: one time, one correlation id. */
export const teller = Effect.fnUntraced(function* (demo: boolean) {
  const commands = yield* Commands
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const correlation_id = v7()
  let position = 0

  const send = (...asked: ReadonlyArray<Addressed<Rejection>>) =>
    commands.send({ command_id: v7(), actor, at, correlation_id }, ...asked).pipe(
      Effect.tap((reached) =>
        Effect.sync(() => {
          position = Math.max(position, reached)
        }),
      ),
      Effect.mapError((failure) =>
        failure instanceof Unavailable ? failure : new FeedFailed({ detail: failure.detail }),
      ),
    )

  /** Sends what is news; what is left goes with the feed's own command. */
  const most = Effect.fnUntraced(function* ({ commands, newest }: Telling) {
    const looked = yield* Effect.forEach(commands, newsOf, { concurrency: loads_at_once })
    const news = looked.filter(({ types }) => types.length > 0)
    const types = news.flatMap(({ types }) => types)
    const revised = types.filter((type) => /Re(vised|quoted)$/.test(type)).length
    const asked = news.map(({ asked }) => asked)
    let sent = 0
    for (; asked.length - sent > streams_max; sent += streams_max) {
      yield* send(...asked.slice(sent, sent + streams_max))
    }
    const told: Told = {
      observed: types.length - revised,
      revised,
      newest: newest === undefined ? null : dateOf(newest),
    }
    return { told, left: asked.slice(sent) }
  })

  return {
    /** Tells it without saying of which feed it was. */
    tell: Effect.fnUntraced(function* (telling: Telling) {
      const { told, left } = yield* most(telling)
      if (left.length > 0) yield* send(...left)
      return told
    }),
    /** That a feed told this. */
    ingested: Effect.fnUntraced(function* (feed: string, telling: Telling) {
      const { told, left } = yield* most(telling)
      yield* send(...left, address(Feed, feed, RecordIngest.make({ at, ...told, demo })))
      return told
    }),
    /** That a feed told things which are in the log already. */
    summed: (feed: string, told: Told) =>
      send(address(Feed, feed, RecordIngest.make({ at, ...told, demo }))),
    /** That a feed could not be read. */
    failed: (feed: string, detail: string) =>
      send(address(Feed, feed, RecordFeedFailure.make({ at, detail }))),
    /** The log's position that shows all that was told. */
    position: () => position,
  }
})

export type Teller = Effect.Success<ReturnType<typeof teller>>
