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
import { allPublished } from "#gateway/system/published-names.ts"
import { visibleTo } from "#gateway/system/visible.ts"
import { ownerOf } from "#gateway/ticket/issue.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { PublishedHistory, type Resumed } from "#projections/published/history.ts"
import type { Delivered, PublishFailed } from "#projections/published-events.ts"
import { type CloudEvent, isRestoration } from "#schemas/cloud-event.ts"
import { BackendUnavailable, Invalid } from "#schemas/system/rejection.ts"

/** A comment that often keeps proxies from closing a quiet stream, in seconds (DECISIONS). */
const comment_seconds = 15

/** The publisher looks every 5 s whether the bus has lost some, in milliseconds. */
const told_again_ms_max = 8_000
const look_ms = 250

/** After this many milliseconds a browser whose stream was cut comes back by itself. */
const retry_ms = 1_000

const encoder = new TextEncoder()

/** A stream ends when its reader goes, at a time that cannot be known, in seconds. */
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

/** An event as the lines of a stream; its JSON has no line break. */
const linesOf = (epoch: string, { sequence, event }: Delivered) =>
  `id: ${epoch}-${sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** Without the empty line that ends a block: some clients take a block of comments for an event. */
const commentOf = (text: string) => `: ${text.replace(/[\r\n]+/g, " ")}\n`

const ending = commentOf("the token is not valid any more")

/** Comments that keep a stream alive; the last one says that its caller lost the right to it. */
const commentsWhile = (holds: Proof["holds"] = Effect.succeed(true)) =>
  Stream.fromSchedule(Schedule.spaced(`${comment_seconds} seconds`)).pipe(
    Stream.mapEffect(() => holds),
    Stream.map((is_valid) => (is_valid ? commentOf("keep-alive") : ending)),
    Stream.takeUntil((comment) => comment === ending),
  )

interface Asked {
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
 * Where the caller wants to begin. A place that was never reached is refused; one that was may be
 * told again in a moment, since a bus that was killed may lose the last ones.
 */
const beginning = Effect.fnUntraced(
  function* ({ query: { since }, headers }: Asked) {
    const { end, before, resume } = yield* PublishedHistory
    // A reconnecting client says so by the header: its query is still the first one.
    const asked = headers["last-event-id"] ?? since
    if (asked === undefined) {
      return yield* resume({ sequence: yield* end })
    }
    if (!isEventId(asked)) return yield* resume({ sequence: yield* before(Date.parse(asked)) })
    const resumed = yield* resume(placeOf(asked))
    for (let looks = 0; ; looks++) {
      const reached = yield* end
      if (resumed.after <= reached) return resumed
      const is_given_up = looks * look_ms >= told_again_ms_max
      if (is_given_up || headers["last-event-id"] === undefined) {
        const detail = `There is no event ${resumed.after}: the events end at ${reached}.`
        return yield* new Invalid({ detail })
      }
      yield* Effect.sleep(look_ms)
    }
  },
  Effect.mapError((failure) => (failure instanceof Invalid ? failure : unreachable(failure))),
)

/** The first block for a client from another history, under the place it continues from. */
const toldFirst = ({ epoch, after, restored }: Resumed) =>
  restored === undefined ? "" : linesOf(epoch, { sequence: after, event: restored })

/** Events as lines; those after a restore that happens meanwhile are of its epoch. */
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
 * Follows the events after `Last-Event-ID` or `since`, or from now on without both; 0 begins with
 * the first there ever was. No answer is 200 when its events cannot be read; when the bus goes
 * away later, the stream says why in a comment and ends, to be resumed.
 */
export const subscribe = Effect.fnUntraced(function* (asked: Asked) {
  const { caller, address = "", proof } = yield* RequestContext
  const visible = yield* visibleTo(caller)
  const { service, type, subject } = asked.query
  const services = service === undefined ? [] : namesOf(service)
  const types = type === undefined ? [] : namesOf(type)
  yield* allPublished(
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
  // Who waits for its place counts already: a burst would pass the limit otherwise.
  const from = yield* Effect.scoped(
    Effect.andThen(
      counted,
      Effect.tap(beginning(asked), () => Effect.mapError(ready, unreachable)),
    ),
  )
  const isIt = ({ event }: Delivered) =>
    isRestoration(event)
      ? event.id !== from.restored?.id
      : visible(event) && (subject === undefined || event.subject === subject)
  const events = follow(from.after, { services, types }).pipe(
    Stream.filter(isIt),
    Stream.map(linesAfter(epochOf, from)),
    Stream.catch(({ detail }) =>
      Stream.fromEffect(
        Effect.as(Effect.logWarning(`An event stream ends: ${detail}`), commentOf(detail)),
      ),
    ),
  )
  // The first comment tells the client at once that it is connected.
  const first = `${commentOf("connected")}retry: ${retry_ms}\n${toldFirst(from)}`
  const body = Stream.make(first).pipe(
    Stream.concat(Stream.merge(events, commentsWhile(proof?.holds), { haltStrategy: "either" })),
    Stream.map((text) => encoder.encode(text)),
  )
  return HttpServerResponse.stream(Stream.unwrap(Effect.as(counted, body)), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  })
})
