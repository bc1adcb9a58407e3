/**
 * Numbers of published events, counted from the log.
 *
 * An event's number is the count of events published before it, plus one. Anchors in the log record
 * the numbers of some events, so that counting starts nearby. Two histories of one log share their
 * numbers up to the restore between them. Source: decision 0172.
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

/** An event's place in the log: its commit, and its index in that commit. */
export interface LogPlace {
  readonly position: number
  readonly index: number
}

/** An event's number and its place. */
export interface NumberedPlace extends LogPlace {
  readonly sequence: number
}

export interface Anchor extends NumberedPlace {
  /** `<service>.<type>` of everything published from here on; empty: any types. */
  readonly types: ReadonlyArray<string>
  /** When it was recorded, in epoch milliseconds. */
  readonly at_ms: number
}

/** Publications and the types they publish. */
export interface Publishing {
  readonly publications: ReadonlyArray<Publication>
  /** `<service>.<type>` of all published events; empty: unknown, and no anchors are recorded. */
  readonly types: ReadonlyArray<string>
  /** Types published by releases that recorded no anchors. */
  readonly types_before: ReadonlyArray<string>
}

/** The log operations that counting uses. */
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

/** All anchors, oldest first, preceded by one for the beginning of the log. */
export const readAnchors = Effect.fnUntraced(function* ({ types_before: types }: Publishing) {
  const log = yield* Log
  const recorded = yield* Stream.runCollect(log.read(publication_stream))
  const restorations = yield* Stream.runCollect(log.read(restoration_stream))
  // After a loss of commits in the middle of the log, later anchors remain.
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

/** The log's restores as of one restore's commit. */
export const restoresAt = ({ commit }: Pick<Recorded, "commit">) =>
  decodeRestored(commit.snapshot.context).restores

export const readRestores = Effect.gen(function* () {
  const last = yield* (yield* Log).load(restoration_stream)
  return last === undefined ? [] : restoresAt(last)
})

/** Events of these types after a place in the log, oldest first, up to the current end. */
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
      // The place's own commit is read again: it may contain later events.
      log.read("", Math.max(0, after.position - 1)).pipe(
        Stream.map((one) => publishedOf(publications, one, restores).filter(isCounted)),
        Stream.flattenIterable,
        Stream.map(({ event }) => event),
      ),
    ),
  )
}

/** Published events after an anchor, numbered by counting, up to the log's current end. */
export const countedFrom = (
  counting: Counting,
  from: NumberedPlace,
  types: ReadonlyArray<string>,
): Stream.Stream<Delivered, LogUnavailable, Log> =>
  Stream.mapAccum(
    eventsAfter(counting, from, types),
    () => from.sequence,
    (last, event) => [last + 1, [{ sequence: last + 1, event }]] as const,
  )

/** Number of events after the first place but not after the second. */
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
