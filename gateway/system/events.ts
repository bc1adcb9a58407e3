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
import { type Proof, RequestContext } from "#gateway/request-context.ts"
import { isEventId, namesOf, placeOf } from "#gateway/system/apis/events.ts"
import { checkPublished } from "#gateway/system/published-names.ts"
import { visibleTo } from "#gateway/system/visible.ts"
import { ownerOf } from "#gateway/ticket/issue.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { PublishedHistory, type Resumed } from "#projections/published/history.ts"
import type { Delivered, PublishFailed } from "#projections/published-events.ts"
import { type CloudEvent, isRestoration } from "#schemas/cloud-event.ts"
import { BackendUnavailable, Invalid } from "#schemas/system/rejection.ts"

/** Interval of comments in seconds, which keep proxies from closing an idle stream (DECISIONS). */
const comment_seconds = 15

/**
 * How long a reconnecting client waits for an event that the bus lost, in milliseconds: the
 * publisher checks for losses every 5 s.
 */
const republish_ms_max = 8_000
const poll_ms = 250

/** Delay before a browser reconnects, in milliseconds. */
const retry_ms = 1_000

const encoder = new TextEncoder()

/** Value of `Retry-After` in seconds: the end of a stream cannot be predicted. */
const stream_retry_s = 10

const refusedStream = (over: OverBudget, { caller_max, all_max }: BudgetLimits) =>
  over === "caller"
    ? new Exhausted({
        status: 429,
        detail:
          `You already have the maximum of ${caller_max} open event streams: close one, or ` +
          "subscribe to several types with one stream.",
        retry_after_s: stream_retry_s,
      })
    : new Exhausted({
        status: 503,
        detail: `All ${all_max} event streams of the server are in use: retry later.`,
        retry_after_s: stream_retry_s,
      })

/** The lines of an event in the stream; its JSON has no line break. */
const linesOf = (epoch: string, { sequence, event }: Delivered) =>
  `id: ${epoch}-${sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/**
 * A comment without the empty line that ends a block: some clients treat a block of comments as an
 * event.
 */
const commentOf = (text: string) => `: ${text.replace(/[\r\n]+/g, " ")}\n`

const ending = commentOf("the token is no longer valid")

/**
 * Comments that keep a stream alive, until a last one reports that the token has become invalid.
 */
const commentsWhile = (holds: Proof["holds"] = Effect.succeed(true)) =>
  Stream.fromSchedule(Schedule.spaced(`${comment_seconds} seconds`)).pipe(
    Stream.mapEffect(() => holds),
    Stream.map((is_valid) => (is_valid ? commentOf("keep-alive") : ending)),
    Stream.takeUntil((comment) => comment === ending),
  )

interface SubscribeRequest {
  readonly query: {
    readonly service?: string | ReadonlyArray<string>
    readonly type?: string | ReadonlyArray<string>
    readonly subject?: string
    /** An event's id, or a time. */
    readonly since?: string
    readonly ticket?: string
  }
  readonly headers: { readonly "last-event-id"?: string }
}

const unreachable = ({ detail }: PublishFailed) =>
  new BackendUnavailable({ detail: `The published events cannot be read: ${detail}` })

/**
 * Where the stream begins. A sequence that was never published is rejected, but a reconnecting
 * client waits a moment for it, because a killed bus may lose the last events.
 */
const beginning = Effect.fnUntraced(
  function* ({ query: { since }, headers }: SubscribeRequest) {
    const { end, before, resume } = yield* PublishedHistory
    // A reconnecting client sends the header, and repeats its first query.
    const from = headers["last-event-id"] ?? since
    if (from === undefined) {
      return yield* resume({ sequence: yield* end })
    }
    if (!isEventId(from)) return yield* resume({ sequence: yield* before(Date.parse(from)) })
    const resumed = yield* resume(placeOf(from))
    for (let attempts = 0; ; attempts++) {
      const last_sequence = yield* end
      if (resumed.after <= last_sequence) return resumed
      const is_given_up = attempts * poll_ms >= republish_ms_max
      if (is_given_up || headers["last-event-id"] === undefined) {
        const detail = `There is no event ${resumed.after}: the last event is ${last_sequence}.`
        return yield* new Invalid({ detail })
      }
      yield* Effect.sleep(poll_ms)
    }
  },
  Effect.mapError((failure) => (failure instanceof Invalid ? failure : unreachable(failure))),
)

/** The first block for a client from another history, with the id that it continues from. */
const restoredLines = ({ epoch, after, restored }: Resumed) =>
  restored === undefined ? "" : linesOf(epoch, { sequence: after, event: restored })

/** Converts events to lines; those after a restore have its epoch. */
const linesAfter = (epochOf: (restoration: CloudEvent) => string, from: Resumed) => {
  let { epoch } = from
  return (delivered: Delivered) => {
    const { event } = delivered
    const is_new = isRestoration(event) && Number(event.data.position) > from.restored_to
    if (is_new) epoch = epochOf(event)
    return linesOf(epoch, delivered)
  }
}

/**
 * Follows the events after `Last-Event-ID` or `since`, or new events if neither is present; 0
 * begins with the first event. The status is not 200 if the events cannot be read. If the bus goes
 * offline later, the stream ends with the reason in a comment, and clients resume it.
 */
export const subscribe = Effect.fnUntraced(function* (request: SubscribeRequest) {
  const { caller, address = "", proof } = yield* RequestContext
  const visible = yield* visibleTo(caller)
  const { service, type, subject } = request.query
  const services = service === undefined ? [] : namesOf(service)
  const types = type === undefined ? [] : namesOf(type)
  yield* checkPublished(
    { field: "query.service", names: services },
    { field: "query.type", names: types },
  )
  const streams = yield* EventStreams
  const holder = holderOf(caller, address)
  const over = streams.refusal(holder)
  if (over !== undefined) return yield* Effect.die(refusedStream(over, streams.limits))
  const tickets = yield* EventTickets
  const ticket = proof?.ticket
  const renewed =
    ticket === undefined || tickets === undefined
      ? Effect.void
      : tickets.use(ownerOf(caller, address), ticket)
  const counted = Effect.andThen(streams.hold(holder), renewed)
  const { follow, ready, epochOf } = yield* PublishedHistory
  // Count the stream while it waits for its beginning: otherwise a burst would exceed the limit.
  const from = yield* Effect.scoped(
    Effect.andThen(
      counted,
      Effect.tap(beginning(request), () => Effect.mapError(ready, unreachable)),
    ),
  )
  const isSelected = ({ event }: Delivered) =>
    isRestoration(event)
      ? event.id !== from.restored?.id
      : visible(event) && (subject === undefined || event.subject === subject)
  const events = follow(from.after, { services, types }).pipe(
    Stream.filter(isSelected),
    Stream.map(linesAfter(epochOf, from)),
    Stream.catch(({ detail }) =>
      Stream.fromEffect(
        Effect.as(Effect.logWarning(`An event stream ended: ${detail}`), commentOf(detail)),
      ),
    ),
  )
  // The first comment shows the client immediately that it is connected.
  const first = `${commentOf("connected")}retry: ${retry_ms}\n${restoredLines(from)}`
  const body = Stream.make(first).pipe(
    Stream.concat(Stream.merge(events, commentsWhile(proof?.holds), { haltStrategy: "either" })),
    Stream.map((text) => encoder.encode(text)),
  )
  return HttpServerResponse.stream(Stream.unwrap(Effect.as(counted, body)), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  })
})
