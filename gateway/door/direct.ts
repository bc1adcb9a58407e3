/**
 * Serves direct routes. Their requests get ids, a deadline and an admission like all others. A
 * refused request goes to the API's app, which writes the error response.
 *
 * Source: DESIGN, the exception: bytes; decision 0196.
 */
import { Effect, Exit } from "effect"
import type {
  DirectRequest,
  DirectResponse,
  DirectRoute,
  Exchange,
  Refusal,
} from "#gateway/direct.ts"
import { admitted } from "#gateway/door/admission.ts"
import type { InFlight } from "#gateway/door/deadlines.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import { addedHeaders } from "#gateway/door/response-headers.ts"
import { inSpan } from "#gateway/door/tracing.ts"
import { arrive, type Incoming, routeOf, type Visit } from "#gateway/door/visit.ts"
import type { Failure } from "#gateway/envelope.ts"
import { internal, tooLate } from "#gateway/failure.ts"
import type { RequestContext } from "#gateway/request-context.ts"
import { isRoute, type Mounted, type Route } from "#gateway/routes.ts"

/** Serves a request if its route is direct; otherwise, and after a refusal, calls `api`. */
export type ServeDirect = (
  request: DirectRequest & { readonly headers: object },
  response: DirectResponse,
  api: () => void,
) => void

/** A request that a direct route refused. */
export interface Refused {
  readonly refusal: Refusal
  readonly request_id: string
}

export interface DirectDoor {
  readonly serve: ServeDirect
  /** The refusal of this request, if a direct route refused it. */
  readonly refusedOf: (source: object) => Refused | undefined
}

/** Only fingerprints of commands need the text of the body, and direct routes send no commands. */
const no_body = Effect.succeed("")

/**
 * The failure of a request past its deadline; the server does not wait for the rest of its body.
 */
const expired = ({ complete }: DirectRequest, in_flight: InFlight): Failure =>
  complete ? tooLate(in_flight) : { ...tooLate(in_flight), headers: { connection: "close" } }

/** Converts Node's request to the door's form. */
const incomingOf = (source: Parameters<ServeDirect>[0]): Incoming => ({
  method: source.method ?? "",
  url: source.url ?? "",
  // In Node only `set-cookie` is an array, and no route reads it.
  headers: source.headers as Incoming["headers"],
  source,
})

interface Arrival {
  readonly parts: DoorParts
  readonly incoming: Incoming
  readonly request: DirectRequest
  readonly response: DirectResponse
  readonly found: { readonly route: Route; readonly params: Exchange["params"] }
  /** Called once with the status of the response; undefined if the client disconnected. */
  readonly onStatus: (status: number | undefined) => void
  readonly refuse: (refused: Refused) => void
  readonly log: (cause: unknown, at: Readonly<Record<string, string>>) => void
}

/** The state of an exchange, and its transitions. */
const lifecycleOf = ({ parts, incoming, request, response, found, ...arrival }: Arrival) => {
  let is_over = false
  let is_begun = false
  let onEnd: (() => void) | undefined

  const close = () => {
    is_over = true
    parts.in_flight.remove(visit.in_flight)
  }
  const end = (status: number | undefined) => {
    close()
    if (is_begun) return
    onEnd?.()
    arrival.onStatus(status)
  }
  /** Ends the exchange because the client disconnected. */
  const disconnect = () => {
    if (!is_over) end(undefined)
  }
  const refuse = (refusal: Refusal) => {
    if (is_over) return
    end(refusal.status)
    if (is_begun) response.destroy()
    else arrival.refuse({ refusal, request_id: visit.edge.request_id })
  }
  const fail = (cause: unknown) => {
    if (is_over) return
    const { method, path } = found.route
    arrival.log(cause, { request_id: visit.edge.request_id, method, path })
    refuse(internal)
  }
  const expire = () => refuse(expired(request, visit.in_flight))
  const visit: Visit = arrive(parts, incoming, found, { interrupt: expire, giveUp: expire })
  /** Sends the head. */
  const begin = (status: number, own: Readonly<Record<string, string>>) => {
    is_begun = true
    const seconds = (parts.clock.currentTimeMillisUnsafe() - visit.in_flight.arrived_ms) / 1000
    parts.metrics.add(found.route, status, seconds)
    response.writeHead(status, { ...own, ...addedHeaders(parts, visit, { status, headers: own }) })
    arrival.onStatus(status)
  }
  return {
    visit,
    close,
    disconnect,
    refuse,
    fail,
    begin,
    isOver: () => is_over,
    onEnd: (end: () => void) => {
      onEnd = end
      if (response.destroyed) disconnect()
      else response.on("close", disconnect)
    },
  }
}

type Lifecycle = ReturnType<typeof lifecycleOf>

const exchangeOf = (
  { parts, incoming, request, response, found }: Arrival,
  { visit, close, disconnect, refuse, fail, begin, isOver, onEnd }: Lifecycle,
  context: RequestContext,
): Exchange => ({
  request,
  response,
  headers: incoming.headers,
  url: incoming.url,
  params: found.params,
  context,
  isOver,
  onEnd,
  refuse,
  now: () => parts.clock.currentTimeNanosUnsafe(),
  body_bytes_max: found.route.bodyLimit(parts.settings()),
  answer: (status, headers, body) => {
    if (response.destroyed) disconnect()
    if (isOver()) return
    // If Node throws here, the exchange must still be open, so that it can fail.
    begin(status, headers)
    close()
    response.end(body)
  },
  begin: (status, headers) => {
    if (response.destroyed) disconnect()
    if (isOver()) return false
    visit.in_flight.is_streamed = true
    response.on("close", disconnect)
    begin(status, headers)
    return true
  },
  fail,
  complete: (rejection) => visit.envelope.complete(rejection, visit.edge),
})

/** The direct routes of the started services, by their entries in the table of routes. */
const runsByRoute = (parts: DoorParts, services: ReadonlyArray<Mounted>) => {
  const runs = new Map<Route, DirectRoute["run"]>()
  for (const { direct = [] } of services) {
    for (const { method, path, run } of direct) {
      const found = parts.find(method, path)
      if (isRoute(found)) runs.set(found.route, run)
    }
  }
  return runs
}

/** Serves the direct routes of these services. */
export const directDoor = Effect.fnUntraced(function* (
  parts: DoorParts,
  services: ReadonlyArray<Mounted>,
) {
  const runs = runsByRoute(parts, services)
  const refusals = new WeakMap<object, Refused>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const log: Arrival["log"] = (cause, at) => {
    run(Effect.annotateLogs(Effect.logError("A request failed.", cause), at))
  }

  /** Runs the route once the request is admitted, nearly always synchronously. */
  const enter = (arrival: Arrival, lifecycle: Lifecycle, answer: DirectRoute["run"]) => {
    const proceed = (exit: Exit.Exit<RequestContext, Failure>) => {
      if (lifecycle.isOver()) return
      if (Exit.isFailure(exit)) {
        const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")
        return failure ? lifecycle.refuse(failure.error) : lifecycle.fail(exit.cause)
      }
      const exchange = exchangeOf(arrival, lifecycle, exit.value)
      try {
        answer(exchange)
      } catch (cause) {
        exchange.fail(cause)
      }
    }
    const admission = admitted(parts, lifecycle.visit, arrival.found.route, no_body)
    // An Exit has the same value and error types as the effect.
    if (Exit.isExit(admission)) return proceed(admission as Exit.Exit<RequestContext, Failure>)
    const fiber = run(admission)
    lifecycle.onEnd(() => fiber.interruptUnsafe())
    fiber.addObserver(proceed)
  }

  const serve: ServeDirect = (request, response, api) => {
    const incoming = incomingOf(request)
    const found = routeOf(parts, incoming.method, incoming.url)
    const answer = isRoute(found) ? runs.get(found.route) : undefined
    if (!isRoute(found) || answer === undefined) return api()
    const refuse = (refused: Refused) => {
      refusals.set(request, refused)
      api()
    }
    let onStatus: Arrival["onStatus"] = () => undefined
    const arrival: Arrival = {
      parts,
      incoming,
      request,
      response,
      found,
      onStatus: (status) => onStatus(status),
      refuse,
      log,
    }
    const lifecycle = lifecycleOf(arrival)
    if (!parts.is_traced) return enter(arrival, lifecycle, answer)
    const traced = Effect.callback<{ readonly status: number }>((resume) => {
      onStatus = (status) =>
        resume(status === undefined ? Effect.interrupt : Effect.succeed({ status }))
      enter(arrival, lifecycle, answer)
    })
    run(inSpan(lifecycle.visit, traced))
  }
  const door: DirectDoor = { serve, refusedOf: (source) => refusals.get(source) }
  return door
})
