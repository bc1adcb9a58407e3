/** Published events as server-sent events. */
import { Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Caller } from "#gateway/caller.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { type Delivered, PublishedEvents } from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { Forbidden } from "#schemas/system/rejection.ts"

/** A comment that often keeps proxies from closing a quiet stream, in seconds (DECISIONS). */
const comment_seconds = 15

const encoder = new TextEncoder()

/** Which events a caller may see; undefined: none. */
export const visibleTo = ({
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
  }
  readonly headers: { readonly "last-event-id"?: string }
}

/**
 * Follows the events after `Last-Event-ID`, or from now on without it.
 *
 * `Last-Event-ID: 0` begins with the first there ever was.
 */
export const subscribe = Effect.fnUntraced(function* ({ query, headers }: Asked) {
  const { caller } = yield* RequestContext
  const visible = visibleTo(caller)
  if (visible === undefined) {
    const detail = "This token belongs to no project and has no scope blobs:read."
    return yield* new Forbidden({ detail })
  }
  const published = yield* PublishedEvents
  const asked = headers["last-event-id"]
  const last = asked === undefined ? yield* Effect.orDie(published.last) : undefined
  const after = asked === undefined ? (last?.sequence ?? 0) : Number(asked)

  const { service, type, subject } = query
  const events = published.follow(after, { service, type }).pipe(
    Stream.filter(({ event }) => visible(event)),
    Stream.filter(({ event }) => subject === undefined || event.subject === subject),
    Stream.map(lines),
  )
  // The first comment tells the client at once that it is connected.
  const body = Stream.make(": connected\n\n").pipe(
    Stream.concat(Stream.merge(events, comments)),
    Stream.map((text) => encoder.encode(text)),
  )
  return HttpServerResponse.stream(body, {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  })
})
