/**
 * Published events: the part of the log that subscribers receive, in the log's order.
 *
 * Source: DESIGN of the running system, 6.
 */
import { Context, Effect, Schema, type Stream } from "effect"
import { type Commit, isPartOf, type Part, parseStream, type Recorded } from "#events/log.ts"
import type { Restored } from "#events/system/restoration.ts"
import type { Place } from "#projections/projection.ts"
import { type CloudEvent, isRestoration } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"
import type { PublishedTypes } from "#schemas/published.ts"

/** An event with the tokens of its bus subject: `events.<service>.<aggregate>.<type>`. */
export interface Published {
  readonly service: string
  readonly aggregate: string
  readonly event: CloudEvent
}

export interface Delivered {
  /** Number of the published event: 1, 2, 3, … */
  readonly sequence: number
  readonly event: CloudEvent
}

/** The bus is unreachable, or another publisher was first. */
export class PublishFailed extends Schema.TaggedError<PublishFailed>()("PublishFailed", {
  detail: Schema.String,
}) {}

/** A published event and its publication time: epoch milliseconds, increasing with the sequence. */
export interface StoredEvent extends Delivered {
  readonly published_ms: number
}

/** The events that a subscriber wants: an empty list selects all. */
export interface EventFilter {
  readonly services?: ReadonlyArray<string> | undefined
  readonly types?: ReadonlyArray<string> | undefined
}

/** Numbers of the first and the last event; `first` is `last + 1` if the stream is empty. */
export interface Bounds {
  readonly first: number
  readonly last: number
}

/** The events after this number were discarded: only the log still has them. */
export class EventsDiscarded extends Schema.TaggedError<EventsDiscarded>()("EventsDiscarded", {
  after: Schema.Int,
}) {}

/** The published stream. It keeps the latest events; discarded ones can be read from the log. */
export class PublishedEvents extends Context.Service<
  PublishedEvents,
  {
    /** Undefined if the stream does not exist: it was deleted or is damaged. */
    readonly bounds: Effect.Effect<Bounds | undefined, PublishFailed>
    /** The last event; undefined if the stream is empty. */
    readonly last: Effect.Effect<Delivered | undefined, PublishFailed>
    /** The event of this sequence; undefined if it is not stored. */
    readonly at: (sequence: number) => Effect.Effect<StoredEvent | undefined, PublishFailed>
    /** The oldest stored event after `sequence` that is wanted; undefined if there is none. */
    readonly next: (
      sequence: number,
      filter: EventFilter,
    ) => Effect.Effect<StoredEvent | undefined, PublishFailed>
    /** Appends events after sequence `after` and returns the sequence of the last one. */
    readonly append: (
      events: ReadonlyArray<Published>,
      after: number,
    ) => Effect.Effect<number, PublishFailed>
    /**
     * The wanted events after `sequence`, oldest first, then each new one; `state_restored` always.
     * Never ends, but fails if some of them are discarded or the stream is recreated.
     */
    readonly follow: (
      sequence: number,
      filter: EventFilter,
    ) => Stream.Stream<Delivered, PublishFailed | EventsDiscarded>
    /** Whether a reader can be opened now: a server at its limit of readers refuses another one. */
    readonly ready: Effect.Effect<void, PublishFailed>
    /** Recreates the stream, empty; the next event's number is `after + 1`. */
    readonly recreate: (after: number) => Effect.Effect<void, PublishFailed>
  }
>()("projections/PublishedEvents") {}

/** The last stored sequence published before a time (epoch milliseconds). */
export const sequenceBefore = Effect.fnUntraced(function* (time_ms: number) {
  const { bounds, at } = yield* PublishedEvents
  const { first, last } = (yield* bounds) ?? { first: 1, last: 0 }
  // Events up to `before` were published earlier, those from `from` on were not.
  let before = first - 1
  let from = last + 1
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2)
    const stored = yield* at(middle)
    if (stored !== undefined && stored.published_ms < time_ms) before = middle
    else from = middle
  }
  return before
})

export const matchesFilter = ({ services = [], types = [] }: EventFilter, event: CloudEvent) =>
  isRestoration(event) ||
  ((services.length === 0 || services.includes(event.source.split("/")[2] ?? "")) &&
    (types.length === 0 || types.includes(event.type)))

/** The published form of an event: a type and its data. */
export interface EventDraft {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  /** Replaces the stream's aggregate and id if subscribers know a finer one. */
  readonly aggregate?: string
  readonly subject?: string
  readonly project_id?: string
  /** Replaces the commit's origin if the event reports an earlier action of another principal. */
  readonly origin?: Pick<Commit, "actor" | "at" | "request_id" | "correlation_id">
}

/** The published events of a service that lists its types and their data. */
export type EventDraftOf<Types extends PublishedTypes> = {
  readonly [Type in keyof Types]: Omit<EventDraft, "type" | "data"> & {
    readonly type: Type
    readonly data: Types[Type]["data"]["Encoded"]
  }
}[keyof Types]

/** The published events of an aggregate kind; an undefined result keeps the event internal. */
export interface Publication {
  readonly part: Part
  readonly toDraft: (event: Message, place: Place) => EventDraft | undefined
}

/** Declares a publication over decoded events. */
export const publication = <Event>({
  part,
  event,
  toDraft,
}: {
  readonly part: Part
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly toDraft: (event: Event, place: Place) => EventDraft | undefined
}): Publication => {
  const decode = Schema.decodeUnknownSync(event)
  return { part, toDraft: (message, place) => toDraft(decode(message), place) }
}

/**
 * The events published for a commit. `restores` are those of the log: a commit after a restore may
 * reuse the position of a lost commit, so its events get other ids.
 */
export const publishedOf = (
  publications: ReadonlyArray<Publication>,
  { position, stream, commit }: Recorded,
  restores: ReadonlyArray<Restored> = [],
): ReadonlyArray<Published> => {
  const restored = restores.findLast((one) => one.position < position)
  const { name, id } = parseStream(stream)
  const [service = "", kind = ""] = name.split(".")
  const matching = publications.filter(({ part }) => isPartOf(part, stream))
  const published: Array<Published> = []
  for (const [index, event] of matching.length === 0 ? [] : commit.events.entries()) {
    const place = { position, index, stream, id, commit }
    const event_id = `${position}.${index}${restored ? `.${restored.restore_id}` : ""}`
    for (const { toDraft } of matching) {
      const draft = toDraft(event, place)
      if (draft === undefined) continue
      const { aggregate = kind } = draft
      published.push({
        service,
        aggregate,
        event: toCloudEvent(draft, { service, kind, event_id, place }),
      })
    }
  }
  return published
}

interface EventSource {
  readonly service: string
  readonly kind: string
  readonly event_id: string
  readonly place: Place
}

const toCloudEvent = (
  draft: EventDraft,
  { service, kind, event_id, place }: EventSource,
): CloudEvent => {
  const { position, id, commit } = place
  const { type, data, aggregate = kind, subject = id, project_id, origin = commit } = draft
  const { request_id, correlation_id, actor, at } = origin
  return {
    specversion: "1.0",
    id: event_id,
    source: `/almanac/${service}/${aggregate}`,
    type,
    subject,
    time: at,
    datacontenttype: "application/json",
    position,
    actor,
    ...(request_id === undefined ? {} : { requestid: request_id }),
    ...(correlation_id === undefined ? {} : { correlationid: correlation_id }),
    ...(project_id === undefined ? {} : { projectid: project_id }),
    data,
  }
}
