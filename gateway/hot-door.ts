/**
 * The front door's other leaf: hot requests come in here, by the same rules and the same counts as
 * through the front door, and whatever is not plainly right is left to it.
 *
 * Source: DESIGN, the exception: bytes, hot routes; decision 0114.
 */
import { Effect, Exit } from "effect"
import { isOpen, mayEnter } from "#gateway/access.ts"
import { bearerOf, correlationId, exceeded, isCoded } from "#gateway/admission.ts"
import { caching } from "#gateway/caching.ts"
import type { Caller } from "#gateway/caller.ts"
import type { InFlight } from "#gateway/deadlines.ts"
import type { Door } from "#gateway/door.ts"
import type { Failure } from "#gateway/envelope.ts"
import { internal, tooLate } from "#gateway/failure.ts"
import type {
  HotHeaders,
  HotPlan,
  HotRefusal,
  HotRequest,
  HotResponse,
  HotRoutes,
  HotVisit,
} from "#gateway/hot.ts"
import { url_length_max } from "#gateway/limits.ts"
import type { Mounted, Route } from "#gateway/routes.ts"
import { isRoute } from "#gateway/visit.ts"
import type { Settings } from "#schemas/settings.ts"

/** Takes a request before the router; `plain` is called with what it does not take. */
export type ServeHot = <Request extends HotRequest, Response extends HotResponse>(
  request: Request,
  response: Response,
  headers: HotHeaders,
  plain: (request: Request, response: Response) => void,
) => void

export interface HotDoor {
  readonly serve: ServeHot
  /** Why a hot route ended this request, if one did. */
  readonly refusalOf: (source: object) => HotRefusal | undefined
  /** For the same request in another form: why the first was ended counts for the second. */
  readonly inherit: (from: object, to: object) => void
}

/** Headers that mean what only the plain route knows, on whatever path. */
const unusual = ["x-auth-token", "x-almanac-position", "idempotency-key", "content-encoding"]

/** Settings under which each request is looked at more closely than here. */
const isPlainTime = ({ api, telemetry }: Settings) =>
  api.rate_limit_per_second === 0 && telemetry.otlp_url === ""

/** Who is known at once, as with a token in memory; undefined is for the plain route to tell. */
const callerOf = ({ authenticate }: Door, { authorization }: HotHeaders): Caller | undefined => {
  const token = authorization === undefined ? undefined : bearerOf(authorization)
  if (authorization !== undefined && token === undefined) return undefined
  const known = authenticate({ token: token === undefined ? undefined : () => token })
  if (!Exit.isExit(known)) return undefined
  // An effect that is an exit is one of its own values and errors.
  const exit = known as Exit.Exit<Caller, unknown>
  return Exit.isSuccess(exit) ? exit.value : undefined
}

/** A plan with the route whose rules it is under. */
interface Found {
  readonly plan: HotPlan
  readonly route: Route
}

/** Which hot route a request is for. */
const finder = (door: Door, services: ReadonlyArray<Mounted>) => {
  const hot = services.flatMap(({ app, hot }) => (app && hot ? [hot] : []))
  const routes = new Map<HotPlan["endpoint"], Route>()
  for (const endpoint of hot.flatMap(({ endpoints }) => endpoints)) {
    const found = door.find(endpoint.method, endpoint.path)
    if (isRoute(found)) routes.set(endpoint, found.route)
  }
  if (routes.size === 0) return undefined
  const planOf = (request: HotRequest, headers: HotHeaders) => {
    for (const { plan } of hot satisfies ReadonlyArray<HotRoutes>) {
      const found = plan(request, headers)
      if (found !== undefined) return found
    }
    return undefined
  }
  return (request: HotRequest, headers: HotHeaders): Found | undefined => {
    const plan = planOf(request, headers)
    const route = plan && routes.get(plan.endpoint)
    return plan && route && { plan, route }
  }
}

/** What a visit is made of. */
interface Arrival {
  readonly door: Door
  readonly request: HotRequest
  readonly response: HotResponse
  readonly headers: HotHeaders
  readonly route: Route
  readonly caller: Caller
  readonly log: (cause: unknown, at: Readonly<Record<string, string>>) => void
  readonly refuse: (refusal: HotRefusal) => void
  readonly leave: () => void
}

/** The answer to what came too late; a body that is still to come is not waited for. */
const expired = ({ complete }: HotRequest, in_flight: InFlight): Failure =>
  complete ? tooLate(in_flight) : { ...tooLate(in_flight), headers: { connection: "close" } }

/** How far a visit has come, and the ways in which it ends. */
const courseOf = ({ door, request, response, route, ...arrival }: Arrival) => {
  let is_over = false
  let is_begun = false
  let onEnd: (() => void) | undefined

  const close = () => {
    is_over = true
    door.in_flight.remove(in_flight)
  }
  /** Ends it where nobody waits for its answer any more. */
  const cut = () => {
    if (is_over) return
    close()
    if (!is_begun) onEnd?.()
  }
  const refuse = (refusal: HotRefusal) => {
    if (is_over) return
    cut()
    if (is_begun) response.destroy()
    else arrival.refuse(refusal)
  }
  const expire = () => refuse(expired(request, in_flight))
  const in_flight: InFlight = door.in_flight.add({
    interrupt: expire,
    source: request,
    is_streamed: route.is_streamed,
    is_unhurried: route.is_unhurried,
    giveUp: expire,
  })
  return {
    in_flight,
    close,
    cut,
    refuse,
    isOver: () => is_over,
    begin: () => {
      is_begun = true
    },
    onEnd: (end: () => void) => {
      onEnd = end
      response.on("close", cut)
    },
  }
}

const visitOf = (arrival: Arrival): HotVisit => {
  const { door, request, response, headers, route, caller } = arrival
  const request_id = door.transport.newId()
  const correlation_id = correlationId(headers, request_id)
  const is_private = !isOpen(route, door.settings())
  const course = courseOf(arrival)
  const { in_flight, close, cut, refuse, isOver, onEnd } = course
  const head = (status: number, more: Readonly<Record<string, string>>) => {
    const seconds = (door.clock.currentTimeMillisUnsafe() - in_flight.arrived_ms) / 1000
    door.metrics.add(route, status, seconds)
    course.begin()
    const all: Array<string> = []
    for (const name in more) if (name !== "vary") all.push(name, more[name] ?? "")
    const { "cache-control": kept, vary = more.vary } = caching(is_private, status, more)
    if (vary !== undefined) all.push("vary", vary)
    if (kept !== undefined) all.push("cache-control", kept)
    all.push("x-request-id", request_id, "x-correlation-id", correlation_id)
    response.writeHead(status, all)
  }
  return {
    request,
    headers,
    response,
    caller,
    request_id,
    correlation_id,
    isOver,
    onEnd,
    refuse,
    now: () => door.clock.currentTimeNanosUnsafe(),
    body_bytes_max: route.bodyLimit(door.settings()),
    answer: (status, more, body) => {
      if (isOver()) return
      close()
      if (response.destroyed) return
      head(status, more)
      response.end(body)
    },
    begin: (status, more) => {
      if (response.destroyed) cut()
      if (isOver()) return false
      in_flight.is_streamed = true
      response.on("close", cut)
      head(status, more)
      return true
    },
    fail: (cause) => {
      if (isOver()) return
      arrival.log(cause, { request_id, method: route.method, path: route.path })
      refuse(internal)
    },
    leave: () => {
      if (isOver()) return
      close()
      arrival.leave()
    },
  }
}

/** Serves the hot routes of these services, by the rules of this door. */
export const hotDoor = Effect.fnUntraced(function* (door: Door, services: ReadonlyArray<Mounted>) {
  const find = finder(door, services)
  const refusals = new WeakMap<object, HotRefusal>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const log: Arrival["log"] = (cause, at) => {
    run(Effect.annotateLogs(Effect.logError("A request failed.", cause), at))
  }

  /** The route that may serve this request here, and its caller. */
  const admitted = (request: HotRequest, headers: HotHeaders) => {
    const settings = door.settings()
    if (find === undefined || (request.url ?? "").length > url_length_max) return undefined
    if (!isPlainTime(settings) || unusual.some((name) => headers[name] !== undefined)) {
      return undefined
    }
    if (isCoded(headers)) return undefined
    const found = find(request, headers)
    if (found === undefined) return undefined
    if (exceeded(headers, found.route, settings) !== undefined) return undefined
    const caller = callerOf(door, headers)
    if (caller === undefined || !mayEnter(found.route.access, caller, door.rules)) return undefined
    return { ...found, caller }
  }

  const serve: ServeHot = (request, response, headers, plain) => {
    const entered = admitted(request, headers)
    if (entered === undefined) {
      if (!door.kept.serve(request, response, headers)) plain(request, response)
      return
    }
    const { plan, route, caller } = entered
    const visit = visitOf({
      door,
      request,
      response,
      headers,
      route,
      caller,
      log,
      refuse: (refusal) => {
        refusals.set(request, refusal)
        plain(request, response)
      },
      leave: () => plain(request, response),
    })
    try {
      plan.run(visit)
    } catch (cause) {
      visit.fail(cause)
    }
  }
  const hot: HotDoor = {
    serve,
    refusalOf: (source) => refusals.get(source),
    inherit: (from, to) => {
      const refusal = refusals.get(from)
      if (refusal !== undefined) refusals.set(to, refusal)
    },
  }
  return hot
})
