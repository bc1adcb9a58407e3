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
  bad_credentials,
  commandId,
  credentialsIn,
  denied,
  fingerprint,
  identify,
  overRate,
  refusedBody,
  requestedPosition,
} from "#gateway/door/admission.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Incoming, Visit } from "#gateway/door/visit.ts"
import { type Failure, share_protection } from "#gateway/envelope.ts"
import type { Credentials } from "#gateway/identity.ts"
import type { Proof, RequestContext } from "#gateway/request-context.ts"
import type { Route } from "#gateway/routes.ts"

type Presented = Pick<Incoming, "url" | "headers" | "source">

type CredentialParts = Pick<DoorParts, "transport" | "tickets" | "clock">

/** The ticket in the query; a token in a header counts more than it. */
const ticketIn = ({ url, headers }: Presented, { ticketed }: Pick<Route, "ticketed">) => {
  const { authorization, "x-auth-token": openstack } = headers
  if (ticketed !== "accepts" || authorization !== undefined || openstack !== undefined) return
  const query = url.indexOf("?")
  const given = query === -1 ? null : new URLSearchParams(url.slice(query)).get("ticket")
  return given ?? undefined
}

/** The credentials of a request; undefined if they are malformed or have expired. */
const credentialsOf = (
  { transport, tickets, clock }: CredentialParts,
  request: Presented,
  route: Pick<Route, "ticketed">,
): Credentials | undefined => {
  const ticket = ticketIn(request, route)
  if (ticket === undefined) return credentialsIn(request, transport)
  return tickets?.open(ticket, clock.currentTimeMillisUnsafe())
}

/** The answer to a ticket that opens no stream. */
const bad_ticket: Failure = {
  ...bad_credentials,
  detail:
    "The ticket is not valid, or not any more: get another by POST /v1/events/tickets, and " +
    "continue with ?since= and the last event's id.",
}

/** The failure of an unknown caller, in words that fit its token or ticket. */
const wordedFailure = (failure: Failure, request: Presented, route: Pick<Route, "ticketed">) =>
  failure === bad_credentials && ticketIn(request, route) !== undefined ? bad_ticket : failure

/** For handlers of routes that are `Ticketed`; undefined elsewhere. */
const proofOf = (
  door: CredentialParts & Pick<DoorParts, "authenticate">,
  request: Presented,
  route: Pick<Route, "ticketed">,
): Proof | undefined => {
  if (route.ticketed === undefined) return undefined
  const credentials = credentialsOf(door, request, route) ?? {}
  const holds = Effect.suspend(() =>
    Effect.match(door.authenticate(credentials), {
      onSuccess: () => true,
      onFailure: ({ _tag }) => _tag === "IdentityUnavailable",
    }),
  )
  return { credentials, ticket: ticketIn(request, route), holds }
}

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
          askKeystone(wordedFailure(failure, request, route), request, settings()),
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
  const position = requestedPosition(request.headers)
  if (position === undefined) return Effect.succeed(context)
  if (Number.isNaN(position)) return Effect.fail(bad_position)
  return route.service.waitFor(position).pipe(
    Effect.mapError(({ detail }) => behind(detail)),
    Effect.as(context),
  )
}

/**
 * The request's context, or the failure that ends it. The effect is already an exit where nothing
 * has to be awaited, as with a token in memory.
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
