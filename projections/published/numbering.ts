/**
 * Numbers of published events, counted from the log.
 *
 * The number of an event is how many were published before it, plus one. Anchors in the log say
 * which event had which number, so that counting begins near it. Two histories of one log share
 * their numbers up to the restore between them. Source: decision 0172.
 */
import { Effect, Schema, Stream, Struct } from "effect"
import { Log, type LogUnavailable, type Recorded } from "#events/log.ts"
import { PublicationEvent, publication_stream } from "#events/system/publication.ts"
import {
  RestorationContext,
  type Restored,
  restoration_stream,
} from "#events/system/restoration.ts"
import {
  type Delivered,
  type Publication,
  type Published,
  publishedOf,
} from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** Where an event is in the log: its commit, and its place among that commit's events. */
export interface LogPlace {
  readonly position: number
  readonly index: number
}

/** An event's number and its place. */
export interface Reached extends LogPlace {
  readonly sequence: number
}

export interface Anchor extends Reached {
  /** `<service>.<type>` of all that was published from here on; empty: no matter which. */
  readonly types: ReadonlyArray<string>
  /** When it was recorded, in epoch milliseconds. */
  readonly at_ms: number
}

/** What is published, and by which types. */
export interface Publishing {
  readonly publications: ReadonlyArray<Publication>
  /** `<service>.<type>` of all of it; empty: it is not known, and no anchors are made. */
  readonly types: ReadonlyArray<string>
  /** What releases published that made no anchors yet. */
  readonly types_before: ReadonlyArray<string>
}

/** What counting needs of the log. */
interface Counting {
  readonly publications: ReadonlyArray<Publication>
  readonly restores: ReadonlyArray<Restored>
}

export const placeOf = ({ position, id }: CloudEvent): LogPlace => ({
  position,
  index: Number(id.split(".")[1]),
})

export const isAfter = (one: LogPlace, other: LogPlace) =>
  one.position > other.position || (one.position === other.position && one.index > other.index)

const decodeAnchored = Schema.decodeUnknownSync(PublicationEvent)

/** All anchors, oldest first, after one of the beginning. */
export const readAnchors = Effect.fnUntraced(function* ({ types_before: types }: Publishing) {
  const log = yield* Log
  const recorded = yield* Stream.runCollect(log.read(publication_stream))
  const restorations = yield* Stream.runCollect(log.read(restoration_stream))
  // Of commits that were lost in the middle of the log the anchors after them are left.
  const isValid = (anchor: Recorded) =>
    !restorations.some((restoration) => {
      const to = restoresAt(restoration).at(-1)?.position ?? 0
      return anchor.position > to && anchor.position < restoration.position
    })
  const anchors = recorded.filter(isValid).flatMap(({ commit }) =>
    commit.events.map(
      (event): Anchor => ({
        ...Struct.omit(decodeAnchored(event), ["type"]),
        at_ms: Date.parse(commit.at),
      }),
    ),
  )
  const origin: Anchor = { sequence: 0, position: 0, index: 0, types, at_ms: 0 }
  return [origin, ...anchors]
})

const decodeRestored = Schema.decodeUnknownSync(RestorationContext)

/** The restores of the log, as of the commit of one. */
export const restoresAt = ({ commit }: Pick<Recorded, "commit">) =>
  decodeRestored(commit.snapshot.context).restores

export const readRestores = Effect.gen(function* () {
  const last = yield* (yield* Log).load(restoration_stream)
  return last === undefined ? [] : restoresAt(last)
})

/** Events of the log after a place, oldest first, up to its end now, of these types. */
const eventsAfter = (
  { publications, restores }: Counting,
  after: LogPlace,
  types: ReadonlyArray<string>,
): Stream.Stream<CloudEvent, LogUnavailable, Log> => {
  const known = new Set(types)
  const isCounted = ({ service, event }: Published) =>
    isAfter(placeOf(event), after) && (known.size === 0 || known.has(`${service}.${event.type}`))
  return Stream.unwrap(
    Effect.map(Log, (log) =>
      // The place's own commit is read again: other events of it may come after.
      log.read("", Math.max(0, after.position - 1)).pipe(
        Stream.map((one) => publishedOf(publications, one, restores).filter(isCounted)),
        Stream.flattenIterable,
        Stream.map(({ event }) => event),
      ),
    ),
  )
}

/** Published events of the log after an anchor, numbered by counting, up to the log's end now. */
export const countedFrom = (
  counting: Counting,
  from: Reached,
  types: ReadonlyArray<string>,
): Stream.Stream<Delivered, LogUnavailable, Log> =>
  Stream.mapAccum(
    eventsAfter(counting, from, types),
    () => from.sequence,
    (last, event) => [last + 1, [{ sequence: last + 1, event }]] as const,
  )

/** How many events come after the one place and not after the other. */
export const countBetween = (
  counting: Counting,
  from: LogPlace,
  to: LogPlace,
  types: ReadonlyArray<string>,
) =>
  eventsAfter(counting, from, types).pipe(
    Stream.takeWhile((event) => !isAfter(placeOf(event), to)),
    Stream.runFold(
      () => 0,
      (count) => count + 1,
    ),
  )
