/**
 * Published events: the part of the log that is told to subscribers, in the log's order.
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

/** An event with the bus subject's tokens: `events.<service>.<aggregate>.<type>`. */
export interface Published {
  readonly service: string
  readonly aggregate: string
  readonly event: CloudEvent
}

export interface Delivered {
  /** Place among the published events: 1, 2, 3, … */
  readonly sequence: number
  readonly event: CloudEvent
}

/** The bus is out of reach, or another publisher was first. */
export class PublishFailed extends Schema.TaggedError<PublishFailed>()("PublishFailed", {
  detail: Schema.String,
}) {}

/** A published event, and when it was published: epoch milliseconds, rising with the sequence. */
export interface Kept extends Delivered {
  readonly published_ms: number
}

/** Which events a subscriber wants: each list is a choice, and an empty one is all. */
export interface Wanted {
  readonly services?: ReadonlyArray<string> | undefined
  readonly types?: ReadonlyArray<string> | undefined
}

/** The numbers of the first and the last event; `first` is `last + 1` where none is kept. */
export interface Bounds {
  readonly first: number
  readonly last: number
}

/** What comes after the event of this number was discarded: only the log has it. */
export class EventsDiscarded extends Schema.TaggedError<EventsDiscarded>()("EventsDiscarded", {
  after: Schema.Int,
}) {}

/** The published stream: it keeps the latest events, and what it drops can be read in the log. */
export class PublishedEvents extends Context.Service<
  PublishedEvents,
  {
    /** Undefined where there is no stream: it was deleted, or is damaged. */
    readonly bounds: Effect.Effect<Bounds | undefined, PublishFailed>
    /** The last one; undefined where none is kept. */
    readonly last: Effect.Effect<Delivered | undefined, PublishFailed>
    /** The one of this sequence; undefined where none is kept. */
    readonly at: (sequence: number) => Effect.Effect<Kept | undefined, PublishFailed>
    /** The oldest wanted one after `sequence` that is kept; undefined where there is none. */
    readonly next: (
      sequence: number,
      wanted: Wanted,
    ) => Effect.Effect<Kept | undefined, PublishFailed>
    /** Adds all after the one of sequence `after`, and answers the last one's sequence. */
    readonly append: (
      events: ReadonlyArray<Published>,
      after: number,
    ) => Effect.Effect<number, PublishFailed>
    /**
     * Those after `sequence`, oldest first, and then each new one; `state_restored` always. It
     * never ends, but fails where some of them are discarded, or the stream is made again.
     */
    readonly follow: (
      sequence: number,
      wanted: Wanted,
    ) => Stream.Stream<Delivered, PublishFailed | EventsDiscarded>
    /** Whether a reader can be opened now: a server that is full of them refuses it. */
    readonly ready: Effect.Effect<void, PublishFailed>
    /** Makes the stream from scratch, empty; the next event's number is `after + 1`. */
    readonly remake: (after: number) => Effect.Effect<void, PublishFailed>
  }
>()("projections/PublishedEvents") {}

/** The last sequence that was published before a time (epoch milliseconds), as far as is kept. */
export const sequenceBefore = Effect.fnUntraced(function* (time_ms: number) {
  const { bounds, at } = yield* PublishedEvents
  const { first, last } = (yield* bounds) ?? { first: 1, last: 0 }
  // Those up to `before` were, those from `from` on were not.
  let before = first - 1
  let from = last + 1
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2)
    const kept = yield* at(middle)
    if (kept !== undefined && kept.published_ms < time_ms) before = middle
    else from = middle
  }
  return before
})

export const isWanted = ({ services = [], types = [] }: Wanted, event: CloudEvent) =>
  isRestoration(event) ||
  ((services.length === 0 || services.includes(event.source.split("/")[2] ?? "")) &&
    (types.length === 0 || types.includes(event.type)))

/** What is told of an event: a type and its data. */
export interface Told {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  /** In the place of the stream's aggregate and id, where subscribers know a finer one. */
  readonly aggregate?: string
  readonly subject?: string
  readonly project_id?: string
  /** In the place of the commit's, where it tells what somebody else did before. */
  readonly origin?: Pick<Commit, "actor" | "at" | "request_id" | "correlation_id">
}

/** What is told by a service that lists its types and their data. */
export type ToldOf<Types extends PublishedTypes> = {
  readonly [Type in keyof Types]: Omit<Told, "type" | "data"> & {
    readonly type: Type
    readonly data: Types[Type]["data"]["Encoded"]
  }
}[keyof Types]

/** What a kind of aggregate publishes; undefined stays internal. */
export interface Publication {
  readonly part: Part
  readonly tell: (event: Message, place: Place) => Told | undefined
}

/** Declares a publication over decoded events. */
export const publication = <Event>({
  part,
  event,
  tell,
}: {
  readonly part: Part
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly tell: (event: Event, place: Place) => Told | undefined
}): Publication => {
  const decode = Schema.decodeUnknownSync(event)
  return { part, tell: (message, place) => tell(decode(message), place) }
}

/**
 * What subscribers are told of a commit. `restores` are those of the log: what comes after one
 * may have the position of another commit that is gone, and gets another id.
 */
export const publishedOf = (
  publications: ReadonlyArray<Publication>,
  { position, stream, commit }: Recorded,
  restores: ReadonlyArray<Restored> = [],
): ReadonlyArray<Published> => {
  const restored = restores.findLast((one) => one.position < position)
  const { name, id } = parseStream(stream)
  const [service = "", kind = ""] = name.split(".")
  const tellers = publications.filter(({ part }) => isPartOf(part, stream))
  const published: Array<Published> = []
  for (const [index, event] of tellers.length === 0 ? [] : commit.events.entries()) {
    const place = { position, index, stream, id, commit }
    const event_id = `${position}.${index}${restored ? `.${restored.restore_id}` : ""}`
    for (const { tell } of tellers) {
      const told = tell(event, place)
      if (told === undefined) continue
      const { aggregate = kind } = told
      published.push({
        service,
        aggregate,
        event: cloudOf(told, { service, kind, event_id, place }),
      })
    }
  }
  return published
}

interface Teller {
  readonly service: string
  readonly kind: string
  readonly event_id: string
  readonly place: Place
}

const cloudOf = (told: Told, { service, kind, event_id, place }: Teller): CloudEvent => {
  const { position, id, commit } = place
  const { type, data, aggregate = kind, subject = id, project_id, origin = commit } = told
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
