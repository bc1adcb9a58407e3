/**
 * Admits a request: its caller, the caller's access, rate, body, idempotency key and position, in
 * this order. No other code decides whether a request reaches its handler.
 *
 * Source: document 1 §5 and §7; decisions of all services, "request ids", "safety of defaults".
 */
import { Effect } from "effect"
import { isPublic, mayUse } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import { anyOf } from "#gateway/door/any-of.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Incoming, Visit } from "#gateway/door/visit.ts"
import { type Failure, share_protection } from "#gateway/envelope.ts"
import type { Credentials } from "#gateway/identity.ts"
import {
  idempotency_key_length_max,
  openstack_token_length_max,
  position_digits_max,
} from "#gateway/limits.ts"
import type { Proof, RequestContext } from "#gateway/request-context.ts"
import type { Route } from "#gateway/routes.ts"
import type { Transport } from "#gateway/transport.ts"
import { callerNetwork } from "#schemas/caller-network.ts"
import type { Settings } from "#schemas/settings.ts"

/** The caller of a public endpoint, who has no scopes and no roles. */
const anonymous: Caller = {
  actor: "anonymous",
  kind: "noauth",
  scopes: new Set(),
  roles: new Set(),
}

const challenge = (error = "") => ({ "www-authenticate": `Bearer realm="almanac"${error}` })

const no_credentials: Failure = {
  status: 401,
  detail: "A bearer token or a client certificate is required.",
  headers: challenge(),
}
const bad_credentials: Failure = {
  status: 401,
  detail: "The token or certificate is invalid, expired or revoked.",
  headers: challenge(', error="invalid_token"'),
}
const bad_ticket: Failure = {
  ...bad_credentials,
  detail:
    "The ticket is invalid or has expired: get another one with POST /v1/events/tickets, and " +
    "continue with ?since= and the id of the last event.",
}
const forbidden: Failure = {
  status: 403,
  detail: "The caller lacks the scope or role that this operation requires.",
  headers: challenge(', error="insufficient_scope"'),
}
const forbidden_by_rule: Failure = {
  status: 403,
  detail: "The caller's role or scope does not allow this operation.",
}
const no_identity: Failure = {
  status: 503,
  detail: "The identity service cannot be reached.",
  headers: { "retry-after": "1" },
}
const bad_key: Failure = {
  status: 400,
  detail: "Idempotency-Key must be 1 to 255 printable ASCII characters.",
}
const bad_position: Failure = {
  status: 400,
  detail: "X-Almanac-Position must be a log position, as a write returns it.",
}

const behind = (detail: string): Failure => ({
  status: 503,
  detail,
  headers: { "retry-after": "1" },
})

type Presented = Pick<Incoming, "url" | "headers" | "source">
type Ticketing = Pick<Route, "ticketed">

const bearer = /^bearer +(\S+) *$/i

/** The token of an Authorization header; undefined if it has none. */
const bearerOf = (authorization: string) => bearer.exec(authorization)?.[1]

/** The value of X-Auth-Token, the token header of share protection. Source: document 2 §5. */
const openstack_token = new RegExp(`^[\\x21-\\x7e]{1,${openstack_token_length_max}}$`)

/** The credentials in the headers or the connection; undefined if a header is malformed. */
export const credentialsIn = (
  { headers, source }: Presented,
  transport: Transport["Service"],
): Credentials | undefined => {
  const { authorization = "", "x-auth-token": openstack } = headers
  if (openstack !== undefined && !openstack_token.test(openstack)) return undefined
  const token = openstack ?? bearerOf(authorization)
  if (authorization !== "" && token === undefined) return undefined
  const certificate = token === undefined ? transport.certificateOf(source) : undefined
  return { token: token === undefined ? undefined : () => token, certificate }
}

/** The ticket in the query, unless a header has a token. */
const ticketIn = ({ url, headers }: Presented, { ticketed }: Ticketing) => {
  const { authorization, "x-auth-token": openstack } = headers
  if (ticketed !== "accepts" || authorization !== undefined || openstack !== undefined) return
  const query = url.indexOf("?")
  const ticket = query === -1 ? null : new URLSearchParams(url.slice(query)).get("ticket")
  return ticket ?? undefined
}

/** The credentials of a request; undefined if they are malformed or have expired. */
const credentialsOf = (
  { transport, tickets, clock }: DoorParts,
  request: Presented,
  route: Ticketing,
): Credentials | undefined => {
  const ticket = ticketIn(request, route)
  if (ticket === undefined) return credentialsIn(request, transport)
  return tickets?.open(ticket, clock.currentTimeMillisUnsafe())
}

/** The proof of identity that handlers of `Ticketed` routes get. */
const proofOf = (parts: DoorParts, request: Presented, route: Ticketing): Proof => {
  const credentials = credentialsOf(parts, request, route) ?? {}
  const holds = Effect.suspend(() =>
    Effect.match(parts.authenticate(credentials), {
      onSuccess: () => true,
      onFailure: ({ _tag }) => _tag === "IdentityUnavailable",
    }),
  )
  return { credentials, ticket: ticketIn(request, route), holds }
}

/** Identifies the caller by its token or, without one, by its certificate. */
const identify = (
  { authenticate }: DoorParts,
  credentials: Credentials | undefined,
): Effect.Effect<Caller, Failure> => {
  if (credentials === undefined) return Effect.fail(bad_credentials)
  return Effect.mapErrorEager(authenticate(credentials), (error) => {
    if (error._tag === "IdentityUnavailable") return no_identity
    return error.reason === "missing" ? no_credentials : bad_credentials
  })
}

const host_pattern = /^[\w.:[\]-]{1,255}$/

/** A 401 that also names where tokens are issued, as OpenStack's services do. */
const withKeystone = (
  failure: Failure,
  { headers }: Presented,
  { keystone_authtoken, tls }: Settings,
): Failure => {
  if (failure.status !== 401) return failure
  const scheme = tls.cert === "" ? "http" : "https"
  const host = host_pattern.test(headers.host ?? "") ? headers.host : "localhost"
  const uri = keystone_authtoken.www_authenticate_uri || `${scheme}://${host}`
  const others = failure.headers?.["www-authenticate"]
  return { ...failure, headers: { "www-authenticate": `Keystone uri="${uri}", ${others}` } }
}

/** The caller, once it is authorized for the route. */
const callerOf = (
  parts: DoorParts,
  { request, envelope }: Visit,
  route: Route,
): Effect.Effect<Caller, Failure> => {
  const { settings, rules } = parts
  const { access } = route
  if (isPublic(route, settings())) return Effect.succeed(anonymous)
  const identified = identify(parts, credentialsOf(parts, request, route))
  const authenticated =
    envelope === share_protection
      ? Effect.mapErrorEager(identified, (failure) => {
          const is_ticket = failure === bad_credentials && ticketIn(request, route) !== undefined
          return withKeystone(is_ticket ? bad_ticket : failure, request, settings())
        })
      : identified
  return Effect.flatMapEager(authenticated, (caller) => {
    if (mayUse(access, caller, rules)) return Effect.succeed(caller)
    const is_ruled = typeof access === "object" && "rule" in access
    return Effect.fail(is_ruled ? forbidden_by_rule : forbidden)
  })
}

/** Counts the request; returns a failure if the caller has exceeded its rate limit. */
const overRate = (
  { take, transport, clock, settings }: DoorParts,
  caller: Caller,
  source: object,
): Failure | undefined => {
  const { api } = settings()
  if (api.rate_limit_per_second === 0) return undefined
  const name = caller === anonymous ? callerNetwork(transport.addressOf(source)) : caller.actor
  const wait_s = take(name, clock.currentTimeMillisUnsafe(), api)
  if (wait_s === 0) return undefined
  const headers = { "retry-after": String(wait_s) }
  return { status: 429, detail: `Too many requests: wait ${wait_s} s.`, headers }
}

/** Whether the request has a body, which may be empty. */
export const hasBody = ({ headers }: Pick<Incoming, "headers">) =>
  headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined

/** Whether the body has a transfer coding other than chunked, which Node does not decode. */
const isCoded = ({ "transfer-encoding": coding = "chunked" }: Incoming["headers"]) =>
  coding.trim().toLowerCase() !== "chunked"

/** A body's content type, without parameters. */
const typeOf = ({ "content-type": type = "" }: Incoming["headers"]) =>
  type.split(";", 1)[0]?.trim().toLowerCase() ?? ""

const wrongType = (type: string, { accepts, pathForType }: Route): Failure => {
  const accepted_types = [...accepts].join(", ")
  const other_path = pathForType(type)
  const elsewhere = other_path === undefined ? "" : ` ${other_path} accepts ${type}.`
  return {
    status: 415,
    detail: `The content type of the request body must be ${anyOf(accepts)}.${elsewhere}`,
    headers: { "accept-post": accepted_types },
  }
}

const coded: Failure = {
  status: 415,
  detail: "The request body must not have a Content-Encoding, or a transfer coding except chunked.",
}

/** The failure if the body's declared size is too large, or the route does not accept its type. */
const refusedBody = (
  { headers }: Pick<Incoming, "headers">,
  route: Route,
  settings: Settings,
): Failure | undefined => {
  const { "content-length": length, "content-encoding": encoding = "identity" } = headers
  if (!hasBody({ headers }) || length === "0") return undefined
  const type = typeOf(headers)
  const limit = route.bodyLimit(settings, type)
  if (length !== undefined && Number(length) > limit) {
    return { status: 413, detail: `The request body is larger than ${limit} bytes.` }
  }
  if (encoding !== "identity" || isCoded(headers)) return coded
  const { accepts } = route
  return type === "" || accepts.size === 0 || accepts.has(type) ? undefined : wrongType(type, route)
}

const idempotency_key = new RegExp(`^[\\x20-\\x7e]{1,${idempotency_key_length_max}}$`)

/** Methods that change nothing and therefore send no command. */
const safe_methods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

/**
 * The id of the command that a request sends, the same for each retry; undefined if the key is
 * malformed. The decision names only POST, but a key also counts for other methods: otherwise a
 * delayed PATCH that was retried could undo a later PATCH.
 */
const commandId = (
  { request: { method, headers }, path, edge }: Visit,
  caller: Caller,
  { idOf }: Transport["Service"],
) => {
  const key = headers["idempotency-key"]
  if (key === undefined || safe_methods.has(method)) return edge.request_id
  if (!idempotency_key.test(key)) return undefined
  const named = [caller.actor, caller.project_id, path, key]
  return idOf(JSON.stringify(method === "POST" ? named : [...named, method]))
}

/** Hex digits of a fingerprint, which only distinguishes a repeated request from another. */
const fingerprint_digits = 12

/**
 * A fingerprint of a request. It may become public: so few digits of a hash do not reveal the body.
 */
const fingerprint = (request: string, { idOf }: Transport["Service"]) =>
  idOf(request).slice(-fingerprint_digits)

const position_pattern = new RegExp(`^\\d{1,${position_digits_max}}$`)

/**
 * The position that the response must include: undefined if none is requested, NaN if malformed.
 */
const requestedPosition = ({ "x-almanac-position": header }: Incoming["headers"]) => {
  if (header === undefined) return undefined
  const position = position_pattern.test(header) ? Number(header) : Number.NaN
  return Number.isSafeInteger(position) ? position : Number.NaN
}

/** Builds the context of the request. With an idempotency key, its fingerprint includes `body`. */
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
  const command_id = commandId(visit, caller, transport)
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
    proof: route.ticketed === undefined ? undefined : proofOf(parts, request, route),
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
 * The request's context, or the failure that ends it. The effect is an Exit if nothing is awaited,
 * for example with a cached token.
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
