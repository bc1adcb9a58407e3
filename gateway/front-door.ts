/**
 * The front door: every request of every service comes in here, and every answer goes out here,
 * but for the hot requests that are answered well at its other leaf, `hot-door.ts`.
 *
 * In this order: ids, route, caller, access, rate, size, type, position, handler, envelope.
 */
import {
  ByteSize,
  type Cause,
  Clock,
  Context,
  Deferred,
  Effect,
  Exit,
  type Fiber,
  References,
  Stream,
  Tracer,
} from "effect"
import { HttpBody, HttpIncomingMessage, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isTraced } from "#events/trace.ts"
import { isOpen, PolicyRules } from "#gateway/access.ts"
import {
  anonymous,
  askKeystone,
  commandId,
  correlationId,
  denied,
  fingerprint,
  hasBody,
  identify,
  overRate,
  positionAsked,
  refusedBody,
} from "#gateway/admission.ts"
import { visitHeaders } from "#gateway/caching.ts"
import type { Caller } from "#gateway/caller.ts"
import { corsHeaders, preflight } from "#gateway/cors.ts"
import { deadlines, deadlinesOf } from "#gateway/deadlines.ts"
import type { Door } from "#gateway/door.ts"
import { ErrorSettings, envelopeOf, type Failure, share_protection } from "#gateway/envelope.ts"
import { failureOf, internal, isClientGone, tooLate } from "#gateway/failure.ts"
import type { HotRefusal } from "#gateway/hot.ts"
import { type HotDoor, hotDoor } from "#gateway/hot-door.ts"
import { Identity } from "#gateway/identity.ts"
import { Int64Form } from "#gateway/json.ts"
import { keptAnswers } from "#gateway/kept-answer.ts"
import { url_length_max } from "#gateway/limits.ts"
import { type RequestMetrics, requestMetrics } from "#gateway/metrics.ts"
import { rateLimiter } from "#gateway/rate-limit.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { type App, type Mounted, type Route, routesOf } from "#gateway/routes.ts"
import { credentialsOf, inWords, proofOf } from "#gateway/ticket/proof.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { inSpan, TracerDisabledWhen } from "#gateway/tracing.ts"
import { Transport } from "#gateway/transport.ts"
import {
  bad_key,
  bad_position,
  isEscaped,
  isRoute,
  misdirected,
  pathOf,
  url_too_long,
  type Visit,
  whole,
  worded,
} from "#gateway/visit.ts"
import type { Settings } from "#schemas/settings.ts"

type Response = HttpServerResponse.HttpServerResponse

/** The answer to a request that the machine below HTTP gave up on. */
export interface Broken {
  readonly status: number
  readonly request_id: string
  readonly body: Readonly<Record<string, unknown>>
}

export interface FrontDoor {
  /**
   * What is said to a request that goes no further: its body ends wrongly, and its handler is
   * interrupted, unless another failure is given.
   */
  readonly broken: (method: string, url: string, failure?: Failure) => Broken
  readonly app: App
  /** What handlers find in their context besides the request's and their service's own. */
  readonly context: Context.Context<never>
  /** Ends the event streams, which would never end; what else is in flight goes on. */
  readonly close: Effect.Effect<void>
  /** Requests in flight now. */
  readonly inFlight: () => number
  /** Takes requests before `app`. */
  readonly hot: HotDoor["serve"]
  /** Tells `app` of the second request what it was to be told of the first. */
  readonly inherit: HotDoor["inherit"]
}

/** The headers that the door adds to an answer. */
const headersOf = ({ settings }: Door, { found, headers }: Visit, response: Response) =>
  visitHeaders(headers, isRoute(found) && !isOpen(found.route, settings()), response)

const arrive = (door: Door, fiber: Fiber.Fiber<unknown, unknown>): Visit => {
  // The server puts the request into the context of each request's fiber.
  const services = fiber.context as Context.Context<HttpServerRequest.HttpServerRequest>
  const request = Context.get(services, HttpServerRequest.HttpServerRequest)
  const path = pathOf(request.url)
  const is_sound = request.url.length <= url_length_max && isEscaped(path)
  const found = is_sound ? door.find(request.method, path) : undefined
  const request_id = door.transport.newId()
  const correlation_id = correlationId(request.headers, request_id)
  const envelope = isRoute(found) ? found.route.envelope : envelopeOf(path)
  const visit: Visit = {
    request,
    path,
    found,
    envelope,
    edge: { request_id, error: door.settings().error },
    correlation_id,
    headers: {
      "x-request-id": request_id,
      "x-correlation-id": correlation_id,
      ...envelope.headers(request_id),
      ...corsHeaders(envelope, request, door.settings()),
    },
    fiber,
    in_flight: door.in_flight.add({
      interrupt: () => fiber.interruptUnsafe(),
      source: request.source,
      is_streamed: isRoute(found) && found.route.is_streamed,
      is_unhurried: isRoute(found) && found.route.is_unhurried,
      giveUp: () => {
        const answer = worded(visit, tooLate(visit.in_flight))
        const headers = { ...headersOf(door, visit, answer), connection: "close" }
        door.transport.hasten(request, answer, headers)
      },
    }),
  }
  return visit
}

const callerOf = (
  door: Door,
  { request, envelope }: Visit,
  route: Route,
): Effect.Effect<Caller, Failure> => {
  const { settings, authenticate, rules } = door
  if (isOpen(route, settings())) return Effect.succeed(anonymous)
  const known = identify(credentialsOf(door, request, route), authenticate)
  const told =
    envelope === share_protection
      ? Effect.mapErrorEager(known, (failure) =>
          askKeystone(inWords(failure, request, route), request, settings()),
        )
      : known
  return Effect.flatMapEager(told, (caller) => {
    const failure = denied(route.access, caller, rules)
    return failure === undefined ? Effect.succeed(caller) : Effect.fail(failure)
  })
}

const admit = (
  door: Door,
  visit: Visit,
  route: Route,
  caller: Caller,
): Effect.Effect<RequestContext, Failure> => {
  const { request, path, edge, correlation_id } = visit
  const failure =
    overRate(door, caller, request.source) ?? refusedBody(request, route, door.settings())
  if (failure !== undefined) return Effect.fail(failure)
  const command_id = commandId(request, path, caller, edge.request_id, door.transport)
  if (command_id === undefined) return Effect.fail(bad_key)
  const position = positionAsked(request.headers)
  const { request_id } = edge
  const is_keyed = command_id !== request_id
  const fingerprint = is_keyed ? fingerprintOf(door, visit) : undefined
  const address = door.transport.addressOf(request.source)
  const context: RequestContext = {
    request_id,
    correlation_id,
    caller,
    address,
    command_id,
    fingerprint,
    proof: proofOf(door, request, route),
  }
  if (position === undefined) return Effect.succeed(context)
  if (Number.isNaN(position)) return Effect.fail(bad_position)
  return route.service.waitFor(position).pipe(
    Effect.mapError(({ detail }) => behind(detail)),
    Effect.as(context),
  )
}

/** Of the query and the body; a body that cannot be read says nothing, as one that is not there. */
const fingerprintOf = ({ transport }: Door, { request, path }: Visit) =>
  Effect.map(
    hasBody(request) ? Effect.orElseSucceed(request.text, () => "") : Effect.succeed(""),
    (body) => fingerprint(JSON.stringify([request.url.slice(path.length), body]), transport),
  )

const behind = (detail: string): Failure => ({
  status: 503,
  detail,
  headers: { "retry-after": "1" },
})

/** The request's own context: the server puts the earlier one back when the request is done. */
const enter = (door: Door, visit: Visit, { bodyLimit }: Route, context: RequestContext) => {
  const { fiber } = visit
  const services = Context.add(fiber.context, RequestContext, context)
  const limit = bodyLimit(door.settings())
  const is_limited = hasBody(visit.request) && Number.isFinite(limit)
  const { MaxBodySize } = HttpIncomingMessage
  fiber.setContext(
    is_limited ? Context.add(services, MaxBodySize, ByteSize.bytes(limit)) : services,
  )
}

const visited = (door: Door, visit: Visit): App => {
  const { request, found, headers } = visit
  if (!isRoute(found)) {
    const allowed = preflight(request, found, headers)
    return Effect.succeed(allowed ?? worded(visit, misdirected(visit)))
  }
  const { route } = found
  const { app, name } = route.service
  if (app === undefined) {
    const detail = `The service ${name} could not start.`
    return Effect.succeed(worded(visit, { status: 503, detail }))
  }
  const keep = door.kept.keeping(visit, route)
  const admitted = Effect.flatMapEager(callerOf(door, visit, route), (caller) =>
    admit(door, visit, route, caller),
  )
  // What is decided at once, as with a token in memory, needs no turn of the fiber.
  const ready = Exit.isExit(admitted) ? admitted : Effect.interruptible(admitted)
  const decided = Effect.matchEager(ready, {
    onFailure: (failure) => worded(visit, failure),
    onSuccess: (context) => context,
  })
  return Effect.flatMapEager(decided, (context) => {
    if (HttpServerResponse.isHttpServerResponse(context)) return Effect.succeed(context)
    enter(door, visit, route, context)
    return keep(context.caller, app)
  })
}

/** What a hot route ended is answered here, in the same words. */
const refused = (visit: Visit, refusal: HotRefusal): App =>
  Effect.succeed(
    HttpServerResponse.isHttpServerResponse(refusal) ? refusal : worded(visit, refusal),
  )

const failed = (visit: Visit, cause: Cause.Cause<unknown>): App => {
  if (visit.in_flight.is_late) return Effect.succeed(worded(visit, tooLate(visit.in_flight)))
  const failure = failureOf(cause, visit.envelope)
  if (failure !== undefined) {
    const is_worded = HttpServerResponse.isHttpServerResponse(failure)
    return Effect.succeed(is_worded ? failure : worded(visit, failure))
  }
  const { request_id } = visit.edge
  return Effect.logError("A request failed.", cause).pipe(
    Effect.annotateLogs({ request_id, method: visit.request.method, path: visit.path }),
    Effect.as(worded(visit, internal)),
  )
}

const endable = ({ closing }: Door, response: Response): Response => {
  const { body } = response
  if (body._tag !== "Stream" || !body.contentType.startsWith("text/event-stream")) return response
  const stream = Stream.interruptWhen(body.stream, Deferred.await(closing))
  return HttpServerResponse.setBody(response, HttpBody.stream(stream, body.contentType))
}

const last = { connection: "close" }

/**
 * Whether the answer refuses a body of unknown length, or one that is late, before its end. The
 * rest is not waited for, so the connection ends: a client that does not know would send its next
 * request into nothing.
 */
const isCutShort = ({ transport }: Door, { request, in_flight }: Visit, { status }: Response) =>
  status >= 400 &&
  (request.headers["transfer-encoding"] !== undefined || in_flight.is_late) &&
  !transport.progressOf(request.source).is_read

const depart = (door: Door, visit: Visit, response: Response): Response => {
  const { request, found, in_flight, fiber } = visit
  const { arrived_ms } = in_flight
  const is_stream = response.body._tag === "Stream" && request.method !== "HEAD"
  if (is_stream) {
    in_flight.is_streamed = true
    fiber.addObserver(() => door.in_flight.remove(in_flight))
  } else door.in_flight.remove(in_flight)
  const seconds = (door.clock.currentTimeMillisUnsafe() - arrived_ms) / 1000
  door.metrics.add(isRoute(found) ? found.route : no_route, response.status, seconds)
  const answer = is_stream ? endable(door, response) : whole(visit, response)
  const of_door = headersOf(door, visit, answer)
  const headers = isCutShort(door, visit, response) ? { ...of_door, ...last } : of_door
  if (door.transport.hasten(request, answer, headers)) return answer
  return HttpServerResponse.setHeaders(answer, headers)
}

/** How to log and to trace. HttpApi copies each request's context: nothing else is in it. */
const observed = Context.pick(
  References.CurrentLoggers,
  References.MinimumLogLevel,
  References.TracerEnabled,
  Tracer.Tracer,
)

/** Where requests count that no route is for, whatever their method. */
const no_route = { method: "any", path: "none" }

/**
 * Builds the door before these services. `settings` is asked anew for each request, so that what
 * is reloadable applies at once; `metrics` takes what is measured. It lives as long as the scope.
 */
export const frontDoor = Effect.fnUntraced(function* (
  services: ReadonlyArray<Mounted>,
  settings: () => Settings,
  metrics: RequestMetrics = requestMetrics(),
) {
  const closing = yield* Deferred.make<void>()
  const parts = {
    settings,
    transport: yield* Transport,
    authenticate: (yield* Identity).authenticate,
    rules: yield* PolicyRules,
    tickets: yield* EventTickets,
    clock: yield* Clock.Clock,
    in_flight: yield* deadlines(() => deadlinesOf(settings())),
    closing,
    find: routesOf(services),
    take: rateLimiter(),
    metrics,
  }
  const door: Door = { ...parts, kept: keptAnswers(parts) }
  const hot = yield* hotDoor(door, services)
  const is_traced = isTraced(yield* Effect.context<never>())
  const answered = (fiber: Fiber.Fiber<unknown, unknown>): App => {
    const visit = arrive(door, fiber)
    const refusal = hot.refusalOf(visit.request.source)
    const app = refusal === undefined ? visited(door, visit) : refused(visit, refusal)
    const answer = Effect.matchCauseEffect(app, {
      onSuccess: (response) => Effect.succeed(depart(door, visit, response)),
      onFailure: (cause) => {
        if (!visit.in_flight.is_late && isClientGone(cause)) {
          door.in_flight.remove(visit.in_flight)
          return Effect.failCause(cause)
        }
        return Effect.map(failed(visit, cause), (response) => depart(door, visit, response))
      },
    })
    return is_traced ? inSpan(visit, answer) : answer
  }
  const around = observed(yield* Effect.context<never>())
  const front: FrontDoor = {
    app: Effect.withFiber(answered),
    context: (is_traced ? Context.add(around, TracerDisabledWhen, () => true) : around).pipe(
      Context.add(ErrorSettings, () => settings().error),
      Context.add(Int64Form, settings().json.int64),
    ),
    close: Effect.asVoid(Deferred.succeed(closing, undefined)),
    inFlight: door.in_flight.count,
    hot: hot.serve,
    inherit: hot.inherit,
    broken: (method, url, given) => {
      const path = pathOf(url)
      const found = door.find(method, path)
      const edge = { request_id: door.transport.newId(), error: settings().error }
      const is_long = url.length > url_length_max
      const failure = (is_long ? url_too_long : given) ?? {
        // DECISIONS, document 1: a put stream that breaks off is 500 INTERNAL.
        status: isRoute(found) && found.route.is_streamed ? 500 : 400,
        detail: "The request's body broke off, or is not framed as HTTP asks.",
      }
      return { status: failure.status, ...edge, body: envelopeOf(path).body(failure, edge) }
    },
  }
  return front
})
