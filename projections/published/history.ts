/**
 * The full history of published events: stored ones from the stream, older ones from the log.
 *
 * A subscriber's place is an epoch and a number. A restore starts a new epoch because numbers then
 * refer to other events; a subscriber with an old epoch first receives `state_restored`.
 *
 * Source: DECISIONS "published events"; decision 0172.
 */
import { Context, Effect, Layer, Schedule, Schema, Stream } from "effect"
import { Log, type LogUnavailable } from "#events/log.ts"
import { type Restored, restoration_stream } from "#events/system/restoration.ts"
import {
  type Anchor,
  countBetween,
  countedFrom,
  type LogPlace,
  type NumberedPlace,
  type Publishing,
  placeOf,
  readAnchors,
  readRestores,
} from "#projections/published/numbering.ts"
import {
  type Bounds,
  type Delivered,
  type EventFilter,
  EventsDiscarded,
  matchesFilter,
  PublishedEvents,
  PublishFailed,
  publishedOf,
  sequenceBefore,
} from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { MissingRange } from "#schemas/system/restoration.ts"

/** Characters of an epoch: 32 bits distinguish a few hundred restores. */
const epoch_chars = 8

/** How often reading a stream that is being recreated is retried, and the pause between retries. */
const tries_max = 20
const pause_ms = 250

/**
 * A subscriber's last known place. One from before epochs existed has no epoch, and counts as a
 * place in the current epoch.
 */
export interface SubscriberPlace {
  readonly epoch?: string | undefined
  readonly sequence: number
}

/** Where a subscriber resumes. */
export interface Resumed {
  readonly epoch: string
  /** It continues after this event number. */
  readonly after: number
  /** The position that the last restore went back to; 0 if there was none. */
  readonly restored_to: number
  /** Delivered first: the subscriber's numbers are from another history. */
  readonly restored: CloudEvent | undefined
}

export class PublishedHistory extends Context.Service<
  PublishedHistory,
  {
    /** The number of the last event; 0 if there is none. */
    readonly end: Effect.Effect<number, PublishFailed>
    /** The epoch that begins with a restore's event. */
    readonly epochOf: (restoration: CloudEvent) => string
    /** Whether a subscriber can follow now. */
    readonly ready: Effect.Effect<void, PublishFailed>
    /** Where a subscriber from this place resumes. */
    readonly resume: (was: SubscriberPlace) => Effect.Effect<Resumed, PublishFailed>
    /** The number of the last event that was published before a time (epoch milliseconds). */
    readonly before: (time_ms: number) => Effect.Effect<number, PublishFailed>
    /** The event of this number; undefined if it does not exist yet. */
    readonly at: (sequence: number) => Effect.Effect<CloudEvent | undefined, PublishFailed>
    /** Events after `sequence`, oldest first, then each new one. Never ends. */
    readonly follow: (
      sequence: number,
      filter: EventFilter,
    ) => Stream.Stream<Delivered, PublishFailed>
  }
>()("projections/PublishedHistory") {
  static readonly layer = (published: Publishing) =>
    Layer.effect(
      PublishedHistory,
      Effect.map(Effect.context<Log | PublishedEvents>(), (context) => {
        const publishing = { ...published, counted: new Set<string>() }
        const provide = Effect.provideContext(context)
        return PublishedHistory.of({
          end: provide(Effect.map(present, ({ last }) => last)),
          epochOf: ({ data }) => epochOf(Context.get(context, Log), String(data.restore_id)),
          ready: provide(Effect.flatMap(PublishedEvents, ({ ready }) => ready)),
          resume: (was) => provide(resume(publishing, was)),
          before: (time_ms) => provide(before(publishing, time_ms)),
          at: (sequence) => provide(at(publishing, sequence)),
          follow: (sequence, filter) =>
            Stream.provideContext(follow(publishing, sequence, filter), context),
        })
      }),
    )
}

/** Maximum number of spans whose count is cached. */
const counted_max = 1_000

/** The published types, and the spans whose count is verified. */
interface Counted extends Publishing {
  readonly counted: Set<string>
}

/** The same with the log's restores. */
interface Known extends Counted {
  readonly restores: ReadonlyArray<Restored>
}

const unreadable = ({ detail }: LogUnavailable) =>
  new PublishFailed({ detail: `The log cannot be read: ${detail}` })

const readable = (failure: PublishFailed | LogUnavailable) =>
  failure instanceof PublishFailed ? failure : unreadable(failure)

/** The stream's bounds. The publisher recreates a lost stream within seconds. */
const present = Effect.gen(function* () {
  const bounds = yield* (yield* PublishedEvents).bounds
  return bounds ?? (yield* being_recreated)
}).pipe(Effect.retry({ times: tries_max, schedule: Schedule.spaced(pause_ms) }))
const being_recreated = new PublishFailed({
  detail: "The stream of published events is being recreated.",
})

/** The epoch after each restore, and the first one. */
const epochOf = (log: Log["Service"], id: string) => log.hashOf(id).slice(0, epoch_chars)

/** The epochs of the log, oldest first; each begins after the restore's position. */
const epochs = Effect.fnUntraced(function* (restores: ReadonlyArray<Restored>) {
  const log = yield* Log
  const first = yield* Stream.runHead(log.read("", 0))
  const begin = first._tag === "None" ? "" : first.value.hash
  return [
    { epoch: epochOf(log, begin), restore: undefined },
    ...restores.map((restore) => ({ epoch: epochOf(log, restore.restore_id), restore })),
  ]
})

/** The event that reports a restore. */
const restorationOf = Effect.fnUntraced(function* (
  { publications, restores }: Known,
  { restore_id, position }: Restored,
) {
  const log = yield* Log
  const restorations = log.read(restoration_stream, position).pipe(
    Stream.map((recorded) => publishedOf(publications, recorded, restores)),
    Stream.flattenIterable,
    Stream.map(({ event }) => event),
    Stream.filter(({ data }) => data.restore_id === restore_id),
  )
  const found = yield* Stream.runHead(restorations)
  return found._tag === "None" ? undefined : found.value
})

/** The event for an epoch unknown to the log: everything seen in it is invalid. */
const unknownEpoch = (epoch: string, present: string): CloudEvent => ({
  specversion: "1.0",
  id: `0.0.${present}`,
  source: "/almanac/system/restoration",
  type: "state_restored",
  subject: "log",
  time: new Date(0).toISOString(),
  datacontenttype: "application/json",
  position: 0,
  actor: "process:system-publisher",
  data: { restore_id: epoch, backup_id: "", made_at: new Date(0).toISOString(), position: 0 },
})

const resume = Effect.fnUntraced(function* (
  publishing: Counted,
  { epoch, sequence }: SubscriberPlace,
) {
  const restores = yield* readRestores
  const all = yield* epochs(restores)
  const now = all.at(-1)?.epoch ?? ""
  const present = { epoch: now, restored_to: restores.at(-1)?.position ?? 0 }
  if (epoch === undefined || epoch === now) {
    return { ...present, after: sequence, restored: undefined } satisfies Resumed
  }
  const left = all[all.findIndex((one) => one.epoch === epoch) + 1]
  const restore = all.some((one) => one.epoch === epoch) ? left?.restore : undefined
  if (restore === undefined) {
    return { ...present, after: 0, restored: unknownEpoch(epoch, now) } satisfies Resumed
  }
  // Up to the restore's position both histories have the same events.
  const shared = yield* numberAt({ ...publishing, restores }, restore.position)
  const restored = yield* restorationOf({ ...publishing, restores }, restore)
  return {
    ...present,
    after: Math.min(sequence, shared),
    restored: restored ?? unknownEpoch(epoch, now),
  } satisfies Resumed
}, Effect.mapError(readable))

/** The number of the last event published from the log up to a position. */
const numberAt = Effect.fnUntraced(function* (known: Known, position: number) {
  const anchors = yield* readAnchors(known)
  const from = anchors.findLast((one) => one.position <= position)
  if (from === undefined) return 0
  const to = { position, index: Number.MAX_SAFE_INTEGER }
  return from.sequence + (yield* countBetween(known, from, to, from.types))
})

/** Whether counting from an anchor yields the known number of another place. */
const isCounted = Effect.fnUntraced(function* (known: Known, from: Anchor, to: NumberedPlace) {
  const { counted } = known
  const span = `${from.sequence} ${to.sequence}`
  if (counted.has(span)) return true
  const count = yield* countBetween(known, from, to, from.types)
  if (count !== to.sequence - from.sequence) return false
  if (counted.size >= counted_max) counted.clear()
  counted.add(span)
  return true
})

const isMissing = Schema.is(Schema.Array(MissingRange))

/** The event of the last accepted loss of commits between two places; undefined if none. */
const lossBetween = Effect.fnUntraced(function* (
  { publications, restores }: Known,
  { position: after }: LogPlace,
  { position: until }: LogPlace,
) {
  const log = yield* Log
  const losses = log.read(restoration_stream).pipe(
    Stream.map((recorded) => publishedOf(publications, recorded, restores)),
    Stream.flattenIterable,
    Stream.map(({ event }) => event),
    Stream.filter(
      ({ data: { missing } }) =>
        isMissing(missing) && missing.some(({ from, to }) => from <= until && to >= after),
    ),
  )
  const found = yield* Stream.runLast(losses)
  return found._tag === "None" ? undefined : found.value
})

/** Events after `sequence` that the stream no longer stores, and where they end. */
const olderThanStream = Effect.fnUntraced(function* (publishing: Counted, sequence: number) {
  const known = { ...publishing, restores: yield* readRestores }
  const anchors = yield* readAnchors(known)
  const { first } = yield* present
  const stored = yield* (yield* PublishedEvents).at(first)
  const from = anchors.findLast((anchor) => anchor.sequence <= sequence) ?? anchors[0]
  const next = anchors.find((anchor) => anchor.sequence > sequence)
  const begins = stored && { sequence: first, ...placeOf(stored.event) }
  const is_next = next !== undefined && (begins === undefined || next.sequence <= first)
  const to = is_next ? next : begins
  if (from === undefined || to === undefined) {
    return yield* new PublishFailed({ detail: `Event ${sequence + 1} cannot be found.` })
  }
  if (!(yield* isCounted(known, from, to))) {
    const event = yield* lossBetween(known, from, to)
    if (event === undefined) {
      return yield* new PublishFailed({
        detail:
          `Events ${from.sequence + 1} to ${to.sequence} can no longer be read. Continue ` +
          `after event ${to.sequence}; the audit log has the remaining earlier events.`,
      })
    }
    // Lost events in between have no numbers, so the subscriber receives the loss instead. The
    // stream's first event is read from the stream itself.
    const until = is_next ? to.sequence : to.sequence - 1
    return { events: Stream.succeed({ sequence: until, event }), until }
  }
  const events = countedFrom(known, from, from.types).pipe(
    Stream.takeWhile((one) => one.sequence <= to.sequence),
    Stream.filter((one) => one.sequence > sequence),
    Stream.mapError(unreadable),
  )
  return { events, until: to.sequence }
}, Effect.mapError(readable))

const isStored = ({ first }: Bounds, sequence: number) => sequence + 1 >= first

const follow = (
  publishing: Counted,
  sequence: number,
  filter: EventFilter,
): Stream.Stream<Delivered, PublishFailed, Log | PublishedEvents> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const published = yield* PublishedEvents
      const next = (after: number) => follow(publishing, after, filter)
      const isSelected = ({ event }: Delivered) => matchesFilter(filter, event)
      if (isStored(yield* present, sequence)) {
        return published.follow(sequence, filter).pipe(
          Stream.filter(isSelected),
          Stream.catchIf(isDiscarded, ({ after }) => next(after)),
        )
      }
      const { events, until } = yield* olderThanStream(publishing, sequence)
      return Stream.concat(
        Stream.filter(events, isSelected),
        Stream.suspend(() => next(until)),
      )
    }),
  )

const isDiscarded = (failure: PublishFailed | EventsDiscarded) => failure instanceof EventsDiscarded

const at = Effect.fnUntraced(function* (publishing: Counted, sequence: number) {
  if (sequence < 1) return undefined
  const stored = yield* (yield* PublishedEvents).at(sequence)
  if (stored !== undefined) return stored.event
  if (isStored(yield* present, sequence - 1)) return undefined
  const { events } = yield* olderThanStream(publishing, sequence - 1)
  const found = yield* Stream.runHead(events)
  return found._tag === "None" ? undefined : found.value.event
})

const before = Effect.fnUntraced(function* (publishing: Counted, time_ms: number) {
  const { first } = yield* present
  const sequence = yield* sequenceBefore(time_ms)
  if (sequence >= first || first === 1) return sequence
  // The stream begins later: the log knows when each event was written.
  const anchors = yield* readAnchors(publishing)
  const from = anchors.findLast((one) => one.at_ms < time_ms && one.sequence < first)
  let last = from?.sequence ?? 0
  while (last < first - 1) {
    const { events, until } = yield* olderThanStream(publishing, last)
    const earlier = yield* Stream.runLast(
      Stream.takeWhile(events, ({ event }) => Date.parse(event.time) < time_ms),
    )
    if (earlier._tag === "None") return last
    last = earlier.value.sequence
    if (last < until) return last
  }
  return Math.min(last, first - 1)
}, Effect.mapError(readable))
