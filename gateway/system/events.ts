/** Published events as server-sent events. */
import { Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import {
  type BudgetLimits,
  EventStreams,
  Exhausted,
  holderOf,
  type OverBudget,
} from "#gateway/budget.ts"
import type { Caller } from "#gateway/caller.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { allPublished } from "#gateway/system/published-names.ts"
import {
  type Delivered,
  PublishedEvents,
  type PublishFailed,
  sequenceBefore,
} from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { BackendUnavailable, Forbidden, Invalid } from "#schemas/system/rejection.ts"

/** A comment that often keeps proxies from closing a quiet stream, in seconds (DECISIONS). */
const comment_seconds = 15

/** The publisher looks every 5 s whether the bus has lost some, in milliseconds. */
const told_again_ms_max = 8_000
const look_ms = 250

/** After this many milliseconds a browser whose stream was cut comes back by itself. */
const retry_ms = 1_000

const encoder = new TextEncoder()

/** A stream ends when its reader goes, which nobody can foretell, in seconds. */
const stream_retry_s = 10

const refusedStream = (over: OverBudget, { caller_max, all_max }: BudgetLimits) =>
  over === "caller"
    ? new Exhausted({
        status: 429,
        detail:
          `You have your share of event streams open, at most ${caller_max} a caller: close ` +
          "one, or read several types over one stream.",
        retry_after_s: stream_retry_s,
      })
    : new Exhausted({
        status: 503,
        detail: `The server's ${all_max} event streams are in use: come back later.`,
        retry_after_s: stream_retry_s,
      })

/** Which events a caller may see; undefined: none. */
const visibleTo = ({
  roles,
  scopes,
  project_id,
}: Pick<Caller, "roles" | "scopes" | "project_id">):
  | ((event: CloudEvent) => boolean)
  | undefined => {
  if (roles.has("admin")) return () => true
  const blobs = scopes.has("blobs:read")
  if (!blobs && project_id === undefined) return undefined
  return ({ source, projectid }) =>
    (blobs && source.startsWith("/almanac/blob-storage/")) ||
    (projectid !== undefined && projectid === project_id)
}

/** An event as the lines of a stream; its JSON has no line break. */
const lines = ({ sequence, event }: Delivered) =>
  `id: ${sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

const comments = Stream.fromSchedule(Schedule.spaced(`${comment_seconds} seconds`)).pipe(
  Stream.map(() => ": keep-alive\n\n"),
)

interface Asked {
  readonly query: {
    readonly service?: string
    readonly type?: string
    readonly subject?: string
    /** A sequence, or a time. */
    readonly since?: string
  }
  readonly headers: { readonly "last-event-id"?: string }
}

const unreachable = ({ detail }: PublishFailed) =>
  new BackendUnavailable({ detail: `The bus cannot be reached: ${detail}` })

/**
 * Where the caller wants to begin: after this sequence. A place that was never reached is refused;
 * one that was may be told again in a moment, since a bus that was killed may lose the last ones.
 */
const beginning = Effect.fnUntraced(function* ({ query: { since }, headers }: Asked) {
  const published = yield* PublishedEvents
  const end = Effect.map(published.last, (last) => last?.sequence ?? 0)
  if (headers["last-event-id"] === undefined && since !== undefined && since.includes("-")) {
    return yield* Effect.mapError(sequenceBefore(Date.parse(since)), unreachable)
  }
  // Who comes back says so by the header: the query is still that of the first time.
  const asked = headers["last-event-id"] ?? since
  if (asked === undefined) return yield* Effect.mapError(end, unreachable)
  const after = Number(asked)
  for (let looks = 0; ; looks++) {
    const reached = yield* Effect.mapError(end, unreachable)
    if (after <= reached) return after
    const is_given_up = looks * look_ms >= told_again_ms_max
    if (is_given_up || headers["last-event-id"] === undefined) {
      const detail = `There is no event ${after}: the events end at ${reached}.`
      return yield* new Invalid({ detail })
    }
    yield* Effect.sleep(look_ms)
  }
})

/**
 * Follows the events after `Last-Event-ID` or `since`, or from now on without both; 0 begins with
 * the first there ever was. When the bus stays away the stream ends, to be resumed.
 */
export const subscribe = Effect.fnUntraced(function* (asked: Asked) {
  const { caller, address = "" } = yield* RequestContext
  const visible = visibleTo(caller)
  if (visible === undefined) {
    const detail = "This token belongs to no project and has no scope blobs:read."
    return yield* new Forbidden({ detail })
  }
  const { service, type, subject } = asked.query
  yield* allPublished(
    { field: "query.service", names: service === undefined ? [] : [service] },
    { field: "query.type", names: type === undefined ? [] : [type] },
  )
  const streams = yield* EventStreams
  const holder = holderOf(caller, address)
  const over = streams.refusal(holder)
  if (over !== undefined) return yield* Effect.die(refusedStream(over, streams.limits))
  const counted = streams.hold(holder)
  const published = yield* PublishedEvents
  // Who waits for its place counts already: a burst would pass the limit otherwise.
  const after = yield* Effect.scoped(Effect.andThen(counted, beginning(asked)))
  const events = published.follow(after, { service, type }).pipe(
    Stream.filter(({ event }) => visible(event)),
    Stream.filter(({ event }) => subject === undefined || event.subject === subject),
    Stream.map(lines),
    Stream.catch(({ detail }) =>
      Stream.drain(Stream.fromEffect(Effect.logWarning(`An event stream ends: ${detail}`))),
    ),
  )
  // The first comment tells the client at once that it is connected.
  const body = Stream.make(`: connected\nretry: ${retry_ms}\n\n`).pipe(
    Stream.concat(Stream.merge(events, comments, { haltStrategy: "left" })),
    Stream.map((text) => encoder.encode(text)),
  )
  return HttpServerResponse.stream(Stream.unwrap(Effect.as(counted, body)), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  })
})
