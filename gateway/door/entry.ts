/**
 * Admits a request: its caller, the caller's access, rate, body, idempotency key and position, in
 * this order. No other code decides whether a request may enter.
 */
import { Effect } from "effect"
import { isOpen } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import {
  anonymous,
  askKeystone,
  commandId,
  denied,
  fingerprint,
  identify,
  overRate,
  positionAsked,
  refusedBody,
} from "#gateway/door/admission.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Visit } from "#gateway/door/visit.ts"
import { type Failure, share_protection } from "#gateway/envelope.ts"
import type { RequestContext } from "#gateway/request-context.ts"
import type { Route } from "#gateway/routes.ts"
import { credentialsOf, inWords, proofOf } from "#gateway/ticket/proof.ts"

const callerOf = (
  parts: DoorParts,
  { request, envelope }: Visit,
  route: Route,
): Effect.Effect<Caller, Failure> => {
  const { settings, authenticate, rules } = parts
  if (isOpen(route, settings())) return Effect.succeed(anonymous)
  const known = identify(credentialsOf(parts, request, route), authenticate)
  const worded =
    envelope === share_protection
      ? Effect.mapErrorEager(known, (failure) =>
          askKeystone(inWords(failure, request, route), request, settings()),
        )
      : known
  return Effect.flatMapEager(worded, (caller) => {
    const failure = denied(route.access, caller, rules)
    return failure === undefined ? Effect.succeed(caller) : Effect.fail(failure)
  })
}

const bad_key: Failure = {
  status: 400,
  detail: "Idempotency-Key must be 1 to 255 printable ASCII characters.",
}
const bad_position: Failure = {
  status: 400,
  detail: "X-Almanac-Position must be a position.",
}

const behind = (detail: string): Failure => ({
  status: 503,
  detail,
  headers: { "retry-after": "1" },
})

/** `body` is the text of the body, which counts for the fingerprint of a request with a key. */
const contextOf = (
  parts: DoorParts,
  visit: Visit,
  route: Route,
  body: Effect.Effect<string>,
  caller: Caller,
): Effect.Effect<RequestContext, Failure> => {
  const { request, path, edge, correlation_id } = visit
  const { transport, settings } = parts
  const failure = overRate(parts, caller, request.source) ?? refusedBody(request, route, settings())
  if (failure !== undefined) return Effect.fail(failure)
  const { request_id } = edge
  const command_id = commandId(request, path, caller, request_id, transport)
  if (command_id === undefined) return Effect.fail(bad_key)
  const is_keyed = command_id !== request_id
  const context: RequestContext = {
    request_id,
    correlation_id,
    caller,
    address: transport.addressOf(request.source),
    command_id,
    fingerprint: is_keyed
      ? Effect.map(body, (text) =>
          fingerprint(JSON.stringify([request.url.slice(path.length), text]), transport),
        )
      : undefined,
    proof: proofOf(parts, request, route),
  }
  const position = positionAsked(request.headers)
  if (position === undefined) return Effect.succeed(context)
  if (Number.isNaN(position)) return Effect.fail(bad_position)
  return route.service.waitFor(position).pipe(
    Effect.mapError(({ detail }) => behind(detail)),
    Effect.as(context),
  )
}

/**
 * The request's context, or why it goes no further. The effect is an exit already where nothing has
 * to be waited for, as with a token in memory.
 */
export const admitted = (
  parts: DoorParts,
  visit: Visit,
  route: Route,
  body: Effect.Effect<string>,
): Effect.Effect<RequestContext, Failure> =>
  Effect.flatMapEager(callerOf(parts, visit, route), (caller) =>
    contextOf(parts, visit, route, body, caller),
  )
