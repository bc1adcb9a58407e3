/**
 * Published events: the part of the log that is told to subscribers, in the log's order.
 *
 * Source: DESIGN of the running system, 6.
 */
import { Context, Effect, Metric, Schedule, Schema, Stream } from "effect"
import {
  type Commit,
  isPartOf,
  Log,
  type LogUnavailable,
  type Part,
  parseStream,
  type Recorded,
} from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import {
  RestorationContext,
  type Restored,
  restoration_stream,
} from "#events/system/restoration.ts"
import { PublisherStanding } from "#projections/health/publisher-standing.ts"
import { type Place, slices } from "#projections/projection.ts"
import { decoder } from "#schemas/as-is.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"
import { counter, gauge } from "#schemas/metric.ts"
import type { PublishedTypes } from "#schemas/published.ts"

/** Pause before the publisher starts again after a failure, in milliseconds. */
const retry_ms = 500

/** How often the publisher looks whether the bus still has all that it took, in milliseconds. */
const check_ms = 5_000

/** Events told at one go: some milliseconds, between which others have the thread. */
const slice_events_max = 500

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

export interface Wanted {
  readonly service?: string | undefined
  readonly type?: string | undefined
}

export class PublishedEvents extends Context.Service<
  PublishedEvents,
  {
    /** The last one; undefined when there is none. */
    readonly last: Effect.Effect<Delivered | undefined, PublishFailed>
    /** The one of this sequence; undefined where there is none yet. */
    readonly at: (sequence: number) => Effect.Effect<Kept | undefined, PublishFailed>
    /** Adds all after the one of sequence `after`, and answers the last one's sequence. */
    readonly append: (
      events: ReadonlyArray<Published>,
      after: number,
    ) => Effect.Effect<number, PublishFailed>
    /** Those after `sequence`, oldest first, and then each new one. It never ends. */
    readonly follow: (sequence: number, wanted: Wanted) => Stream.Stream<Delivered, PublishFailed>
  }
>()("projections/PublishedEvents") {}

/** The last sequence that was published before a time (epoch milliseconds); 0: none was. */
export const sequenceBefore = Effect.fnUntraced(function* (time_ms: number) {
  const { last, at } = yield* PublishedEvents
  // Those up to `before` were, those from `from` on were not.
  let before = 0
  let from = ((yield* last)?.sequence ?? 0) + 1
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2)
    const kept = yield* at(middle)
    if (kept !== undefined && kept.published_ms < time_ms) before = middle
    else from = middle
  }
  return before
})

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
  const decode = decoder(event)
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

const indexOf = ({ id }: CloudEvent) => Number(id.split(".")[1])

const decodeRestored = Schema.decodeUnknownSync(RestorationContext)

/** The restores of the log, as of a commit that tells. */
const restoresAt = ({ commit }: Recorded) => decodeRestored(commit.snapshot.context).restores

const position_gauge = gauge(
  "almanac_publisher_position",
  "Position in the log that the publisher has come to, where this process was it.",
)
const published_counter = counter(
  "almanac_published_events_total",
  "Events that this process published.",
  {},
)

/** Publishes from where the published events end, until it fails. */
const publishFrom = Effect.fnUntraced(function* (publications: ReadonlyArray<Publication>) {
  const log = yield* Log
  const detail = (yield* LogGuard).trouble()
  if (detail !== undefined) return yield* new PublishFailed({ detail })
  const published = yield* PublishedEvents
  const last = yield* published.last
  const begin = last ?? { sequence: 0, event: undefined }
  let sequence = begin.sequence
  const last_restored = yield* log.load(restoration_stream)
  let restores = last_restored === undefined ? [] : restoresAt(last_restored)

  const isNews = ({ event }: Published) =>
    begin.event === undefined ||
    event.position > begin.event.position ||
    indexOf(event) > indexOf(begin.event)

  // The last commit is read again: it may have been told in part.
  const position = Math.max(0, (begin.event?.position ?? 0) - 1)
  const standing = yield* PublisherStanding
  const reach = (at: number) => {
    standing.position = at
    standing.why = undefined
    return Metric.update(position_gauge, at)
  }
  yield* reach(begin.event?.position ?? 0)
  const tell = (slice: ReadonlyArray<Recorded>) =>
    slice.flatMap((recorded) => {
      if (recorded.stream === restoration_stream) restores = restoresAt(recorded)
      return publishedOf(publications, recorded, restores).filter(isNews)
    })
  const publishing = Stream.runForEachArray(log.follow("", position), (stretch) =>
    Effect.gen(function* () {
      const news: Array<Published> = []
      for (const slice of slices(stretch, slice_events_max)) {
        if (slice[0] !== stretch[0]) yield* Effect.yieldNow
        news.push(...tell(slice))
      }
      if (news.length > 0) sequence = yield* published.append(news, sequence)
      yield* reach(stretch.at(-1)?.position ?? 0)
      if (news.length > 0) yield* Metric.update(published_counter, news.length)
    }),
  )

  // A bus that was killed may have lost the last of what it took, as it does not sync: without
  // this, those would be missing until there is another event.
  const checking = Effect.gen(function* () {
    yield* Effect.sleep(check_ms)
    const taken = sequence
    const kept = (yield* published.last)?.sequence ?? 0
    if (kept < taken) {
      return yield* new PublishFailed({ detail: `The bus has ${kept} of ${taken} events.` })
    }
  })
  return yield* Effect.raceFirst(publishing, Effect.forever(checking))
})

/**
 * Publishes for as long as it runs; only one publisher may (a lease elects it).
 *
 * Its place is the last published event itself, and each append names the one before: neither a
 * crash nor an outage, nor a second publisher, doubles or drops an event. What it cannot read it
 * does not skip: it waits for a release that can, and says so.
 */
export const publisher = (publications: ReadonlyArray<Publication>) =>
  Effect.suspend(() => {
    let told = ""
    const tell = Effect.fnUntraced(function* ({ detail }: PublishFailed | LogUnavailable) {
      const standing = yield* PublisherStanding
      standing.why = detail
      // Where it has published nothing it stands before the first commit.
      standing.position ??= 0
      if (detail === told) return
      told = detail
      yield* Effect.logWarning(`The publisher waits: ${detail}`)
    })
    return publishFrom(publications).pipe(
      Effect.catchDefect((defect) => Effect.fail(new PublishFailed({ detail: String(defect) }))),
      Effect.tapError(tell),
      Effect.retry(Schedule.spaced(retry_ms)),
      Effect.andThen(Effect.never),
      // From here on another process may publish.
      Effect.ensuring(
        Effect.map(PublisherStanding, (standing) => {
          standing.position = undefined
        }),
      ),
    )
  })
