/**
 * What a request must pass before its handler runs: who, whether, how often, how large, what kind.
 *
 * Source: document 1 §5 and §7; decisions of all services, "request ids", "safety of defaults".
 */
import { Effect } from "effect"
import { type Access, mayEnter } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Incoming } from "#gateway/door/visit.ts"
import type { Failure } from "#gateway/envelope.ts"
import type { Authenticate, Credentials } from "#gateway/identity.ts"
import {
  correlation_id_length_max,
  idempotency_key_length_max,
  openstack_token_length_max,
  position_digits_max,
} from "#gateway/limits.ts"
import type { Route } from "#gateway/routes.ts"
import type { Transport } from "#gateway/transport.ts"
import { callerNetwork } from "#schemas/caller-network.ts"
import type { Rules } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"

/** Whoever uses a public path: nothing proven, nothing allowed. */
export const anonymous: Caller = {
  actor: "anonymous",
  kind: "noauth",
  scopes: new Set(),
  roles: new Set(),
}

const challenge = (error = "") => ({ "www-authenticate": `Bearer realm="almanac"${error}` })

const no_credentials: Failure = {
  status: 401,
  detail: "A bearer token or a client certificate is needed.",
  headers: challenge(),
}
export const bad_credentials: Failure = {
  status: 401,
  detail: "The token or certificate is not valid, or not any more.",
  headers: challenge(', error="invalid_token"'),
}
const forbidden: Failure = {
  status: 403,
  detail: "The caller lacks the scope or role for this.",
  headers: challenge(', error="insufficient_scope"'),
}
const forbidden_by_rule: Failure = {
  status: 403,
  detail: "The caller's role or scope does not allow this.",
}
const no_identity: Failure = {
  status: 503,
  detail: "The identity service cannot be reached.",
  headers: { "retry-after": "1" },
}

const bearer = /^bearer +(\S+) *$/i

/** The token of an Authorization header; undefined where it carries none. */
const bearerOf = (authorization: string) => bearer.exec(authorization)?.[1]

/** Document 2 §5: the value of the header of share protection's tokens. */
const openstack_token = new RegExp(`^[\\x21-\\x7e]{1,${openstack_token_length_max}}$`)

/** What a request shows by its headers and its connection; undefined: a malformed header. */
export const credentialsIn = (
  { headers, source }: Pick<Incoming, "headers" | "source">,
  transport: Transport["Service"],
): Credentials | undefined => {
  const { authorization = "", "x-auth-token": openstack } = headers
  if (openstack !== undefined && !openstack_token.test(openstack)) return undefined
  const token = openstack ?? bearerOf(authorization)
  if (authorization !== "" && token === undefined) return undefined
  const certificate = token === undefined ? transport.certificateOf(source) : undefined
  return { token: token === undefined ? undefined : () => token, certificate }
}

/** Who the caller is, from the token or, without one, the certificate. */
export const identify = (
  credentials: Credentials | undefined,
  authenticate: Authenticate,
): Effect.Effect<Caller, Failure> => {
  if (credentials === undefined) return Effect.fail(bad_credentials)
  return Effect.mapErrorEager(authenticate(credentials), (error) => {
    if (error._tag === "IdentityUnavailable") return no_identity
    return error.reason === "missing" ? no_credentials : bad_credentials
  })
}

/** Why this caller may not, if so. */
export const denied = (access: Access, caller: Caller, rules: () => Rules): Failure | undefined => {
  if (mayEnter(access, caller, rules)) return undefined
  return typeof access === "object" && "rule" in access ? forbidden_by_rule : forbidden
}

/** A 401 that also says, as OpenStack's services do, where tokens are had. */
export const askKeystone = (
  failure: Failure,
  { headers }: Pick<Incoming, "headers">,
  { keystone_authtoken, tls }: Settings,
): Failure => {
  if (failure.status !== 401) return failure
  const scheme = tls.cert === "" ? "http" : "https"
  const host = host_pattern.test(headers.host ?? "") ? headers.host : "localhost"
  const uri = keystone_authtoken.www_authenticate_uri || `${scheme}://${host}`
  const others = failure.headers?.["www-authenticate"]
  return { ...failure, headers: { "www-authenticate": `Keystone uri="${uri}", ${others}` } }
}

const host_pattern = /^[\w.:[\]-]{1,255}$/

/** Why the caller has to wait, if so; else one more is counted. */
export const overRate = (
  {
    take,
    transport,
    clock,
    settings,
  }: Pick<DoorParts, "take" | "transport" | "clock" | "settings">,
  caller: Caller,
  source: object,
): Failure | undefined => {
  const { api } = settings()
  if (api.rate_limit_per_second === 0) return undefined
  const who = caller === anonymous ? callerNetwork(transport.addressOf(source)) : caller.actor
  const wait_s = take(who, clock.currentTimeMillisUnsafe(), api)
  if (wait_s === 0) return undefined
  const headers = { "retry-after": String(wait_s) }
  return { status: 429, detail: `Too many requests: wait ${wait_s} s.`, headers }
}

/** Whether a body comes with the request, empty or not. */
export const hasBody = ({ headers }: Pick<Incoming, "headers">) =>
  headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined

/** Whether the body is chunked and something else too: Node undoes the one and leaves the other. */
const isCoded = ({ "transfer-encoding": coding = "chunked" }: Incoming["headers"]) =>
  coding.trim().toLowerCase() !== "chunked"

/** A body's content type, without parameters. */
const typeOf = ({ "content-type": type = "" }: Incoming["headers"]) =>
  type.split(";", 1)[0]?.trim().toLowerCase() ?? ""

/** The most that the body may have, where it announces more. */
const exceeded = (
  headers: Incoming["headers"],
  { bodyLimit }: Pick<Route, "bodyLimit">,
  settings: Settings,
): number | undefined => {
  const { "content-length": length } = headers
  if (length === undefined || length === "0") return undefined
  const limit = bodyLimit(settings, typeOf(headers))
  return Number(length) > limit ? limit : undefined
}

/** Why this body is refused, if so: it is declared too large, or the route does not take it. */
export const refusedBody = (
  request: Pick<Incoming, "headers">,
  route: Route,
  settings: Settings,
): Failure | undefined => {
  const { headers } = request
  if (!hasBody(request) || headers["content-length"] === "0") return undefined
  const limit = exceeded(headers, route, settings)
  if (limit !== undefined) {
    return { status: 413, detail: `The request body is larger than ${limit} bytes.` }
  }
  const encoding = headers["content-encoding"] ?? "identity"
  if (encoding !== "identity" || isCoded(headers)) {
    const detail =
      "A request body must have no Content-Encoding, nor a transfer coding but chunked."
    return { status: 415, detail }
  }
  const { accepts, takerOf } = route
  const type = typeOf(headers)
  if (type === "" || accepts.size === 0 || accepts.has(type)) return undefined
  const wanted = [...accepts].join(", ")
  const taker = takerOf(type)
  const elsewhere = taker === undefined ? "" : ` ${taker} takes ${type}.`
  return {
    status: 415,
    detail: `The request body must be ${wanted}.${elsewhere}`,
    headers: { "accept-post": wanted },
  }
}

const unprintable = /[^\x21-\x7e]/g

/** The beginning of a text, in memory of its own: a slice would hold on to all of the text. */
const beginningOf = (text: string, length: number) =>
  text.length > length ? structuredClone(text.slice(0, length)) : text

/** The caller's own id for what this belongs to: printable, bounded, or ours. */
export const correlationId = (
  headers: { readonly [name: string]: string | undefined },
  request_id: string,
) => {
  const given = beginningOf(headers["x-request-id"] ?? "", correlation_id_length_max)
  return given.replaceAll(unprintable, "") || request_id
}

const idempotency_key = new RegExp(`^[\\x20-\\x7e]{1,${idempotency_key_length_max}}$`)

/** Methods that ask for no change, and so for no command. */
const reading: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

/**
 * The command that a request means, sent once or again; undefined when the key is malformed. Beyond
 * the decision, which knows a key of POST alone: a PATCH that comes late, after it was sent again
 * and followed by another, would undo the other.
 */
export const commandId = (
  { method, headers }: Pick<Incoming, "method" | "headers">,
  path: string,
  caller: Caller,
  request_id: string,
  { idOf }: Transport["Service"],
) => {
  const key = headers["idempotency-key"]
  if (key === undefined || reading.has(method)) return request_id
  if (!idempotency_key.test(key)) return undefined
  const named = [caller.actor, caller.project_id, path, key]
  return idOf(JSON.stringify(method === "POST" ? named : [...named, method]))
}

/** Hex digits of a fingerprint, which only distinguishes a repeated request from another. */
const fingerprint_digits = 12

/** A fingerprint of a request, for anyone to read: so few digits of a hash reveal no body. */
export const fingerprint = (request: string, { idOf }: Transport["Service"]) =>
  idOf(request).slice(-fingerprint_digits)

const position = new RegExp(`^\\d{1,${position_digits_max}}$`)

/** The position that the reader wants to see; undefined: none, NaN: malformed. */
export const requestedPosition = (headers: Incoming["headers"]) => {
  const given = headers["x-almanac-position"]
  if (given === undefined) return undefined
  const number = position.test(given) ? Number(given) : Number.NaN
  return Number.isSafeInteger(number) ? number : Number.NaN
}
