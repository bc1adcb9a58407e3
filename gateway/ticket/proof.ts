/** What a request proves its caller by: its headers, its connection or, where taken, a ticket. */
import { Effect } from "effect"
import { bad_credentials, credentialsIn } from "#gateway/door/admission.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Incoming } from "#gateway/door/visit.ts"
import type { Failure } from "#gateway/envelope.ts"
import type { Credentials } from "#gateway/identity.ts"
import type { Proof } from "#gateway/request-context.ts"
import type { Route } from "#gateway/routes.ts"

type Asking = Pick<Incoming, "url" | "headers" | "source">

type Shown = Pick<DoorParts, "transport" | "tickets" | "clock">

/** The ticket in the query; a token in a header counts more than it. */
const ticketIn = ({ url, headers }: Asking, { ticketed }: Pick<Route, "ticketed">) => {
  const { authorization, "x-auth-token": openstack } = headers
  if (ticketed !== "accepts" || authorization !== undefined || openstack !== undefined) return
  const query = url.indexOf("?")
  const given = query === -1 ? null : new URLSearchParams(url.slice(query)).get("ticket")
  return given ?? undefined
}

/** The credentials of a request; undefined if what it shows is malformed or not valid any more. */
export const credentialsOf = (
  { transport, tickets, clock }: Shown,
  request: Asking,
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

/** The failure of a caller who is not known, in words that fit what it showed. */
export const inWords = (failure: Failure, request: Asking, route: Pick<Route, "ticketed">) =>
  failure === bad_credentials && ticketIn(request, route) !== undefined ? bad_ticket : failure

/** For handlers of routes that are `Ticketed`; undefined elsewhere. */
export const proofOf = (
  door: Shown & Pick<DoorParts, "authenticate">,
  request: Asking,
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
