/**
 * Serves direct routes. Each request gets its ids, its deadline and its admission as every other
 * does; once refused, it goes through the API's app, which words the refusal.
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
import type { InFlight } from "#gateway/door/deadlines.ts"
import { admitted } from "#gateway/door/entry.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import { inSpan } from "#gateway/door/tracing.ts"
import {
  addedHeaders,
  arrive,
  type Incoming,
  isRoute,
  routeOf,
  type Visit,
} from "#gateway/door/visit.ts"
import type { Failure } from "#gateway/envelope.ts"
import { internal, tooLate } from "#gateway/failure.ts"
import type { RequestContext } from "#gateway/request-context.ts"
import type { Mounted, Route } from "#gateway/routes.ts"

/** Serves a request if its route is direct; otherwise calls `api`, as for what it refuses. */
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
  /** Why this request was refused before the API got it, if it was. */
  readonly refusedOf: (source: object) => Refused | undefined
}

/** The text of a body counts for the fingerprint of commands alone, and no direct route is one. */
const no_body = Effect.succeed("")

/** The answer to a late request; the rest of a body is not waited for. */
const expired = ({ complete }: DirectRequest, in_flight: InFlight): Failure =>
  complete ? tooLate(in_flight) : { ...tooLate(in_flight), headers: { connection: "close" } }

/** A request in the form that Effect's server has it. */
const incoming = (
  { method = "", url = "", headers }: Parameters<ServeDirect>[0],
  source: object,
): Incoming => ({
  method,
  url,
  // Node makes a list of `set-cookie` alone, which no route reads.
  headers: headers as Incoming["headers"],
  source,
})

interface Arrival {
  readonly parts: DoorParts
  readonly incoming: Incoming
  readonly request: DirectRequest
  readonly response: DirectResponse
  readonly found: { readonly route: Route; readonly params: Exchange["params"] }
  /** Called once with the status of the answer; undefined: its client is gone. */
  readonly onStatus: (status: number | undefined) => void
  readonly refuse: (refused: Refused) => void
  readonly log: (cause: unknown, at: Readonly<Record<string, string>>) => void
}

/** How far an exchange has come, and the ways in which it ends. */
const courseOf = ({ parts, incoming, request, response, found, ...arrival }: Arrival) => {
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
  /** Ends it because its client is gone. */
  const cut = () => {
    if (!is_over) end(undefined)
  }
  const refuse = (refusal: Refusal) => {
    if (is_over) return
    end(refusal.status)
    if (is_begun) response.destroy()
    else arrival.refuse({ refusal, request_id: visit.edge.request_id })
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
    cut,
    refuse,
    begin,
    isOver: () => is_over,
    onEnd: (end: () => void) => {
      onEnd = end
      if (response.destroyed) cut()
      else response.on("close", cut)
    },
  }
}

type Course = ReturnType<typeof courseOf>

const exchangeOf = (
  { parts, incoming, request, response, found, log }: Arrival,
  { visit, close, cut, refuse, begin, isOver, onEnd }: Course,
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
    if (response.destroyed) cut()
    if (isOver()) return
    close()
    begin(status, headers)
    response.end(body)
  },
  begin: (status, headers) => {
    if (response.destroyed) cut()
    if (isOver()) return false
    visit.in_flight.is_streamed = true
    response.on("close", cut)
    begin(status, headers)
    return true
  },
  fail: (cause) => {
    if (isOver()) return
    const { method, path } = found.route
    log(cause, { request_id: visit.edge.request_id, method, path })
    refuse(internal)
  },
  complete: (rejection) => visit.envelope.complete(rejection, visit.edge),
})

/** The direct routes of the services that have started, by the API's own routes. */
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

  /** Runs the route once its request is admitted, which is at once in nearly all cases. */
  const enter = (arrival: Arrival, course: Course, answer: DirectRoute["run"]) => {
    const proceed = (exit: Exit.Exit<RequestContext, Failure>) => {
      if (course.isOver()) return
      if (Exit.isFailure(exit)) {
        const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")
        return failure ? course.refuse(failure.error) : course.refuse(internal)
      }
      const exchange = exchangeOf(arrival, course, exit.value)
      try {
        answer(exchange)
      } catch (cause) {
        exchange.fail(cause)
      }
    }
    const admission = admitted(parts, course.visit, arrival.found.route, no_body)
    // An effect that is an exit is one of its own values and errors.
    if (Exit.isExit(admission)) return proceed(admission as Exit.Exit<RequestContext, Failure>)
    const fiber = run(admission)
    course.onEnd(() => fiber.interruptUnsafe())
    fiber.addObserver(proceed)
  }

  const serve: ServeDirect = (request, response, api) => {
    const asked = incoming(request, request)
    const found = routeOf(parts, asked.method, asked.url)
    const answer = isRoute(found) ? runs.get(found.route) : undefined
    if (!isRoute(found) || answer === undefined) return api()
    const refuse = (refused: Refused) => {
      refusals.set(request, refused)
      api()
    }
    let onStatus: Arrival["onStatus"] = () => undefined
    const arrival: Arrival = {
      parts,
      incoming: asked,
      request,
      response,
      found,
      onStatus: (status) => onStatus(status),
      refuse,
      log,
    }
    const course = courseOf(arrival)
    if (!parts.is_traced) return enter(arrival, course, answer)
    const traced = Effect.callback<{ readonly status: number }>((resume) => {
      onStatus = (status) =>
        resume(status === undefined ? Effect.interrupt : Effect.succeed({ status }))
      enter(arrival, course, answer)
    })
    run(inSpan(course.visit, traced))
  }
  const door: DirectDoor = { serve, refusedOf: (source) => refusals.get(source) }
  return door
})
