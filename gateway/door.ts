/**
 * The door: every request enters here, and every response leaves here.
 *
 * In this order: ids, route, caller, access, rate, size, type, position, handler, envelope. Direct
 * routes write the server's own response (`door/direct.ts`); all others go through Effect's API.
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
import { PolicyRules } from "#gateway/access.ts"
import type { Refusal } from "#gateway/direct.ts"
import { admitted, hasBody } from "#gateway/door/admission.ts"
import { deadlines, deadlinesOf } from "#gateway/door/deadlines.ts"
import { directDoor, type Refused, type ServeDirect } from "#gateway/door/direct.ts"
import { errorForBrowser } from "#gateway/door/error-page.ts"
import {
  completeResponse,
  failureResponse,
  misdirected,
  url_too_long,
} from "#gateway/door/error-response.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import { rateLimiter } from "#gateway/door/rate-limit.ts"
import { addedHeaders, preflight } from "#gateway/door/response-headers.ts"
import { inSpan, TracerDisabledWhen } from "#gateway/door/tracing.ts"
import { arrive, pathOf, routeOf, type Visit } from "#gateway/door/visit.ts"
import { ErrorSettings, envelopeOf, type Failure } from "#gateway/envelope.ts"
import { failureOf, internal, isClientGone, tooLate } from "#gateway/failure.ts"
import { Identity } from "#gateway/identity.ts"
import { Int64Form } from "#gateway/json.ts"
import { url_length_max } from "#gateway/limits.ts"
import { type RequestMetrics, requestMetrics } from "#gateway/metrics.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { type App, isRoute, type Mounted, type Route, routesOf } from "#gateway/routes.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { Transport } from "#gateway/transport.ts"
import type { Settings } from "#schemas/settings.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** A request in the API's app, with the fiber that serves it. */
interface ApiVisit extends Visit<Request> {
  readonly fiber: Fiber.Fiber<unknown, unknown>
}

/** The response to a request that Node's server could not read. */
export interface Broken {
  readonly status: number
  readonly request_id: string
  readonly body: Readonly<Record<string, unknown>>
}

export interface Door {
  /**
   * The response to a request that the server ends early. By default its body has broken off, so
   * its handler is interrupted.
   */
  readonly errorResponse: (method: string, url: string, failure?: Failure) => Broken
  /** Serves the requests that no direct route serves. */
  readonly app: App
  /** The context of handlers, in addition to that of the request and of their service. */
  readonly context: Context.Context<never>
  /** Ends the event streams, which would never end; other requests in flight continue. */
  readonly close: Effect.Effect<void>
  /** Requests in flight now. */
  readonly inFlight: () => number
  /** Receives each request before `app`. */
  readonly direct: ServeDirect
}

const arriveAtApi = (
  parts: DoorParts,
  fiber: Fiber.Fiber<unknown, unknown>,
  refusedOf: (source: object) => Refused | undefined,
): { readonly visit: ApiVisit; readonly refusal: Refusal | undefined } => {
  // The server adds the request to the context of its fiber.
  const services = fiber.context as Context.Context<HttpServerRequest.HttpServerRequest>
  const request = Context.get(services, HttpServerRequest.HttpServerRequest)
  const { refusal, request_id } = refusedOf(request.source) ?? {}
  const found = routeOf(parts, request.method, request.url)
  const interrupt = () => fiber.interruptUnsafe()
  const giveUp = (visit: Visit<Request>) => {
    const answer = failureResponse(visit, tooLate(visit.in_flight))
    const headers = { ...addedHeaders(parts, visit, answer), connection: "close" }
    parts.transport.hasten(request, answer, headers)
  }
  const visit = arrive(parts, request, found, { interrupt, giveUp }, request_id)
  return { visit: { ...visit, fiber }, refusal }
}

/** The text of a body; an unreadable one is treated as empty. */
const bodyOf = (request: Request) =>
  hasBody(request) ? Effect.orElseSucceed(request.text, () => "") : Effect.succeed("")

/** Sets the request's context. The server restores the previous one when the request is done. */
const enter = (
  parts: DoorParts,
  visit: ApiVisit,
  { bodyLimit }: Route,
  context: RequestContext,
) => {
  const { fiber } = visit
  const services = Context.add(fiber.context, RequestContext, context)
  const limit = bodyLimit(parts.settings())
  const is_limited = hasBody(visit.request) && Number.isFinite(limit)
  const { MaxBodySize } = HttpIncomingMessage
  fiber.setContext(
    is_limited ? Context.add(services, MaxBodySize, ByteSize.bytes(limit)) : services,
  )
}

const visited = (parts: DoorParts, visit: ApiVisit): App => {
  const { request, found, headers } = visit
  if (!isRoute(found)) {
    const allowed = preflight(request, found, headers)
    return Effect.succeed(allowed ?? failureResponse(visit, misdirected(visit)))
  }
  const { route } = found
  const { app, name } = route.service
  if (app === undefined) {
    const detail = `The service ${name} could not start.`
    return Effect.succeed(failureResponse(visit, { status: 503, detail }))
  }
  const admission = admitted(parts, visit, route, bodyOf(request))
  // A synchronous decision, for example with a cached token, needs no turn of the fiber.
  const ready = Exit.isExit(admission) ? admission : Effect.interruptible(admission)
  const decided = Effect.matchEager(ready, {
    onFailure: (failure) => failureResponse(visit, failure),
    onSuccess: (context) => context,
  })
  return Effect.flatMapEager(decided, (context) => {
    if (HttpServerResponse.isHttpServerResponse(context)) return Effect.succeed(context)
    enter(parts, visit, route, context)
    return app
  })
}

/** The response to a request that a direct route refused. */
const refused = (visit: Visit, refusal: Refusal): App =>
  Effect.succeed(
    HttpServerResponse.isHttpServerResponse(refusal) ? refusal : failureResponse(visit, refusal),
  )

const failed = (visit: Visit, cause: Cause.Cause<unknown>): App => {
  if (visit.in_flight.is_late)
    return Effect.succeed(failureResponse(visit, tooLate(visit.in_flight)))
  const failure = failureOf(cause, visit.envelope)
  if (failure !== undefined) {
    const is_response = HttpServerResponse.isHttpServerResponse(failure)
    return Effect.succeed(is_response ? failure : failureResponse(visit, failure))
  }
  const { request_id } = visit.edge
  return Effect.logError("A request failed.", cause).pipe(
    Effect.annotateLogs({ request_id, method: visit.request.method, path: visit.path }),
    Effect.as(failureResponse(visit, internal)),
  )
}

const endable = ({ closing }: DoorParts, response: Response): Response => {
  const { body } = response
  if (body._tag !== "Stream" || !body.contentType.startsWith("text/event-stream")) return response
  const stream = Stream.interruptWhen(body.stream, Deferred.await(closing))
  return HttpServerResponse.setBody(response, HttpBody.stream(stream, body.contentType))
}

const last = { connection: "close" }

/**
 * Whether an error response is sent before the end of the body. The server does not wait for the
 * rest and closes the connection, so the client must not reuse it.
 */
const isCutShort = (
  { transport }: DoorParts,
  { request, in_flight }: Visit,
  { status }: Response,
) =>
  status >= 400 &&
  (request.headers["transfer-encoding"] !== undefined || in_flight.is_late) &&
  !transport.progressOf(request.source).is_read

const depart = (parts: DoorParts, visit: ApiVisit, response: Response): Response => {
  const { request, found, in_flight, fiber } = visit
  const { arrived_ms } = in_flight
  const is_stream = response.body._tag === "Stream" && request.method !== "HEAD"
  if (is_stream) {
    in_flight.is_streamed = true
    fiber.addObserver(() => parts.in_flight.remove(in_flight))
  } else parts.in_flight.remove(in_flight)
  const seconds = (parts.clock.currentTimeMillisUnsafe() - arrived_ms) / 1000
  parts.metrics.add(isRoute(found) ? found.route : no_route, response.status, seconds)
  const answer = is_stream
    ? endable(parts, response)
    : errorForBrowser(visit, completeResponse(visit, response), parts.services)
  const of_door = addedHeaders(parts, visit, answer)
  const headers = isCutShort(parts, visit, response) ? { ...of_door, ...last } : of_door
  if (parts.transport.hasten(request, answer, headers)) return answer
  return HttpServerResponse.setHeaders(answer, headers)
}

/** Only services for logs and traces, because HttpApi copies the context for each request. */
const loggingServices = Context.pick(
  References.CurrentLoggers,
  References.MinimumLogLevel,
  References.TracerEnabled,
  Tracer.Tracer,
)

/** Requests without a route are counted here, regardless of their method. */
const no_route = { method: "any", path: "none" }

/**
 * Builds the door for these services; it lives as long as the scope. `settings` is read for each
 * request, so that reloadable settings apply immediately; `metrics` counts the requests.
 */
export const openDoor = Effect.fnUntraced(function* (
  services: ReadonlyArray<Mounted>,
  settings: () => Settings,
  metrics: RequestMetrics = requestMetrics(),
) {
  const outer_context = yield* Effect.context<never>()
  const is_traced = isTraced(outer_context)
  const parts: DoorParts = {
    settings,
    transport: yield* Transport,
    authenticate: (yield* Identity).authenticate,
    rules: yield* PolicyRules,
    tickets: yield* EventTickets,
    clock: yield* Clock.Clock,
    in_flight: yield* deadlines(() => deadlinesOf(settings())),
    closing: yield* Deferred.make<void>(),
    find: routesOf(services),
    services: services.map(({ name }) => name),
    take: rateLimiter(),
    metrics,
    is_traced,
  }
  const { serve, refusedOf } = yield* directDoor(parts, services)
  const serveApi = (fiber: Fiber.Fiber<unknown, unknown>): App => {
    const { visit, refusal } = arriveAtApi(parts, fiber, refusedOf)
    const app = refusal === undefined ? visited(parts, visit) : refused(visit, refusal)
    const answer = Effect.matchCauseEffect(app, {
      onSuccess: (response) => Effect.succeed(depart(parts, visit, response)),
      onFailure: (cause) => {
        if (!visit.in_flight.is_late && isClientGone(cause)) {
          parts.in_flight.remove(visit.in_flight)
          return Effect.failCause(cause)
        }
        return Effect.map(failed(visit, cause), (response) => depart(parts, visit, response))
      },
    })
    return is_traced && refusal === undefined ? inSpan(visit, answer) : answer
  }
  const logging_context = loggingServices(outer_context)
  const door: Door = {
    app: Effect.withFiber(serveApi),
    context: (is_traced
      ? Context.add(logging_context, TracerDisabledWhen, () => true)
      : logging_context
    ).pipe(
      Context.add(ErrorSettings, () => settings().error),
      Context.add(Int64Form, settings().json.int64),
    ),
    close: Effect.asVoid(Deferred.succeed(parts.closing, undefined)),
    inFlight: parts.in_flight.count,
    direct: serve,
    errorResponse: (method, url, reason) => {
      const path = pathOf(url)
      const found = parts.find(method, path)
      const edge = { request_id: parts.transport.newId(), error: settings().error }
      const is_long = url.length > url_length_max
      const failure = (is_long ? url_too_long : reason) ?? {
        // DECISIONS, document 1: a put stream that breaks off is 500 INTERNAL.
        status: isRoute(found) && found.route.is_streamed ? 500 : 400,
        detail: "The request's body broke off, or is not framed as HTTP asks.",
      }
      return { status: failure.status, ...edge, body: envelopeOf(path).body(failure, edge) }
    },
  }
  return door
})
