/**
 * Authenticates callers by our own tokens, static tokens, JWTs, client certificates and, in a
 * cloud, Keystone, in this order. Source: decisions of document 1, "auth"; document 2 §5.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import { v7 } from "uuid"
import { type Principals, unrestrictedCaller } from "#adapters/identity/development-credentials.ts"
import { jwts } from "#adapters/identity/jwt.ts"
import { keystoneTokens } from "#adapters/identity/keystone.ts"
import { certificates, staticTokens } from "#adapters/identity/static.ts"
import {
  hasExpired,
  newToken,
  sha256Of,
  type TokenRecord,
  type TokenStore,
  token_pattern,
  token_prefix,
} from "#adapters/identity/token-store.ts"
import type { IssuedTokens } from "#adapters/system/issued-tokens.ts"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, Identity, Unauthenticated } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"
import type { TokenRequest } from "#schemas/token.ts"

/** Our own tokens: those of this machine, and those of the whole deployment. */
export interface OwnTokens {
  readonly store: TokenStore
  readonly issued: IssuedTokens
}

/**
 * Identity for these settings; with `api.noauth` every caller is the development tenant with all
 * roles. All projects and users are in the domain of the development domain owner. Fails if the
 * file of public keys cannot be read.
 */
export const identity = (settings: Settings, own: OwnTokens, principals: Principals) =>
  Layer.effect(
    Identity,
    Effect.gen(function* () {
      const { api } = settings
      const authenticateCaller = tryInOrder(yield* configuredAuthenticators(settings, own))
      const addDomain = inDomain(principals.domain_owner.domain_id)
      const everyone = Effect.succeed(addDomain(unrestrictedCaller(principals)))
      const authenticate: Authenticate = api.noauth
        ? () => everyone
        : (credentials) => Effect.mapEager(authenticateCaller(credentials), addDomain)
      return { authenticate }
    }),
  )

/**
 * Identity of a cloud: Keystone validates tokens that are not our own. Fails if the file of public
 * keys cannot be read.
 */
export const identityKeystone = (settings: Settings, own: OwnTokens) =>
  Layer.effect(
    Identity,
    Effect.gen(function* () {
      const { token_cache_time } = settings.keystone_authtoken
      const local = yield* configuredAuthenticators(settings, own)
      return { authenticate: tryInOrder([...local, yield* keystoneTokens(token_cache_time)]) }
    }),
  )

/** Authenticators without external services; the log is queried last. */
const configuredAuthenticators = Effect.fnUntraced(function* (settings: Settings, own: OwnTokens) {
  const { auth, tls } = settings
  const clock = yield* Clock.Clock
  const find = (sha256: string) => own.store.find(sha256) ?? own.issued.find(sha256)
  return [
    tokensInMemory({ find }, clock),
    staticTokens([...auth.tokens, ...dashboardToken(settings)]),
    yield* jwts(auth.jwt),
    certificates(tls.client_certificates),
    tokensInLog(own.issued, clock),
  ]
})

/** `capital.token`, if set: grants access to the dashboard only. */
const dashboardToken = ({ capital: { token } }: Settings) => {
  if (Redacted.value(token) === "") return []
  const grant = { scopes: [dashboard_scope], roles: [], project_id: "", domain_id: "", user_id: "" }
  return [{ name: "dashboard", token, sha256: "", ...grant }]
}

/** Scope of the dashboard's paths. */
const dashboard_scope = "dashboard:read"

/** Memoizes by object identity, because creating a caller costs more than a lookup. */
const memoized = <A extends object, B>(make: (from: A) => B) => {
  const cache = new WeakMap<A, B>()
  return (from: A): B => {
    const known = cache.get(from)
    if (known !== undefined) return known
    const value = make(from)
    cache.set(from, value)
    return value
  }
}

/** Adds the domain to a caller. */
const inDomain = (domain_id: string) =>
  memoized(
    (caller: Caller): Caller => ({
      ...caller,
      ...(caller.project_id !== undefined && { project_domain_id: domain_id }),
      ...(caller.user_id !== undefined && { user_domain_id: domain_id }),
    }),
  )

/** Maximum length of a token: Node accepts 16 KiB of headers. */
const token_length_max = 16_384

/** Tries authenticators in order until one recognizes the credentials. */
export const tryInOrder =
  (authenticators: ReadonlyArray<Authenticate>): Authenticate =>
  (credentials) => {
    const { token, certificate } = credentials
    if (token === undefined && certificate === undefined) return refused("missing")
    if (token !== undefined && token().length > token_length_max) {
      return refused("malformed")
    }
    return authenticators.reduce<ReturnType<Authenticate>>(
      (result, authenticate) =>
        Effect.catchEager(result, (error) =>
          error._tag === "Unauthenticated" && error.reason === "unknown"
            ? authenticate(credentials)
            : Effect.fail(error),
        ),
      unknown,
    )
  }

const refused = (reason: Unauthenticated["reason"]) => Effect.fail(new Unauthenticated({ reason }))

/** Shared instance: all authenticators but one return it, and creating an error is expensive. */
const unknown = refused("unknown")

/** Our own tokens that are in memory. */
export const tokensInMemory =
  (store: Pick<TokenStore, "find">, clock: Clock.Clock): Authenticate =>
  ({ token }) => {
    if (token === undefined || !token().startsWith(token_prefix)) return unknown
    // Not a timing leak: the lookup compares hashes.
    const record = store.find(sha256Of(token()))
    return record === undefined ? unknown : callerUnlessExpired(record, clock)
  }

/** Tokens of `token issue` that are not in memory, looked up in the log. */
const tokensInLog =
  ({ lookUp }: IssuedTokens, clock: Clock.Clock): Authenticate =>
  ({ token }) => {
    if (token === undefined || !token_pattern.test(token())) return unknown
    return Effect.flatMap(lookUp(sha256Of(token())), (record) =>
      record === undefined ? unknown : callerUnlessExpired(record, clock),
    )
  }

const callerUnlessExpired = (record: TokenRecord, clock: Clock.Clock) =>
  // Synchronous, with an unsafe clock read, so that direct routes need not wait.
  hasExpired(record, clock.currentTimeMillisUnsafe())
    ? refused("expired")
    : Effect.succeed(callerOfRecord(record))

/** Records are immutable and are replaced as a whole. */
const callerOfRecord = memoized((record: TokenRecord) => callerOf(record))

const callerOf = (record: TokenRecord): Caller => ({
  actor: record.kind === "issued" ? `token:${record.name}` : actorOf(record),
  kind: record.kind,
  scopes: new Set(record.scopes),
  roles: new Set(record.roles),
  ...(record.project_id !== null && { project_id: record.project_id }),
  ...(record.domain_id !== null && { domain_id: record.domain_id }),
  ...(record.user_id !== null && { user_id: record.user_id }),
})

/** A development principal is a user, or, like the blob tokens, only a named token. */
const actorOf = ({ name, user_id }: TokenRecord) =>
  user_id === null ? `token:${name}` : `user:${user_id}`

/** Expired records are kept for a day, so that clients get "expired" instead of "unknown". */
const expired_retention_ms = 86_400_000

/**
 * Issues and revokes tokens of one machine: for its control commands, and for earlier releases,
 * which stored all tokens this way. Fails with IdentityUnavailable if the file cannot be written or
 * is full.
 */
export const tokenIssuer = (store: TokenStore) => ({
  issue: Effect.fnUntraced(function* (request: TokenRequest) {
    const token = newToken()
    const now = yield* Clock.currentTimeMillis
    const record: TokenRecord = {
      sha256: sha256Of(token),
      name: request.name ?? v7(),
      kind: "issued",
      scopes: request.scopes,
      roles: request.roles,
      project_id: request.project_id ?? null,
      domain_id: request.domain_id ?? null,
      user_id: request.user_id ?? null,
      created_at: now,
      expires_at: request.ttl_seconds === undefined ? null : now + request.ttl_seconds * 1000,
    }
    yield* store.update((records) => [
      ...records.filter((one) => !hasExpired(one, now - expired_retention_ms)),
      record,
    ])
    return Redacted.make(token)
  }),
  revoke: Effect.fnUntraced(function* (name: string) {
    let revoked = 0
    yield* store.update((records) => {
      const remaining = records.filter((one) => one.kind !== "issued" || one.name !== name)
      revoked = records.length - remaining.length
      return remaining
    })
    return revoked
  }),
})
