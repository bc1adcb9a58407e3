/**
 * Authentication by Keystone, which validates tokens on each request, apart from a cache.
 *
 * Identity headers (`X-Roles` and the like) are never read: they are for services behind an
 * authenticating proxy. Source: document 2 §5.
 */
import { Cache, Clock, Duration, Effect, Redacted, Schema } from "effect"
import { knownTokens } from "#adapters/identity/known-token.ts"
import { type CloudResponse, decodeResponse, unexpected } from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall, token_length_max } from "#adapters/keystone/session.ts"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, IdentityUnavailable, Unauthenticated } from "#gateway/identity.ts"
import type { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { PrincipalId } from "#schemas/token.ts"

/** Maximum concurrent validations. */
const tokens_max = 10_000

const ms_per_s = 1000

const keystone = { service: "Keystone" } as const

const Domain = Schema.Struct({ id: PrincipalId })
const Validated = Schema.Struct({
  token: Schema.Struct({
    user: Schema.Struct({ id: PrincipalId, domain: Domain }),
    expires_at: Schema.String,
    /** Absent for an unscoped token. */
    roles: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String }))),
    project: Schema.optionalKey(Schema.Struct({ id: PrincipalId, domain: Domain })),
    domain: Schema.optionalKey(Domain),
  }),
})

const refused = (reason: Unauthenticated["reason"]) => Effect.fail(new Unauthenticated({ reason }))

/**
 * Validates tokens with Keystone, once for concurrent requests with the same token; valid ones are
 * cached for `cache_s` seconds. Malformed tokens are rejected locally.
 */
export const keystoneTokens = Effect.fnUntraced(function* (cache_s: number) {
  const session = yield* KeystoneSession
  const known = knownTokens(yield* Clock.Clock, cache_s * ms_per_s)
  const validate = Effect.fnUntraced(function* (subject: Redacted.Redacted<string>) {
    const now_ms = yield* Clock.currentTimeMillis
    const { caller, expires_ms } = yield* requestValidation(session, subject)
    known.add(Redacted.value(subject), caller, now_ms, expires_ms)
    return caller
  })
  // Deduplicates concurrent validations; results are in `known` afterwards.
  const validations = yield* Cache.makeWith(validate, {
    capacity: tokens_max,
    timeToLive: () => Duration.zero,
  })
  const authenticate: Authenticate = ({ token }) => {
    const text = token === undefined ? "" : token()
    if (text === "") return refused("missing")
    if (!visible_ascii.test(text)) return refused("malformed")
    const caller = known.find(text)
    return caller === undefined
      ? Cache.get(validations, Redacted.make(text))
      : Effect.succeed(caller)
  }
  return authenticate
})

/** Valid tokens: Keystone's have a few hundred characters, and it rejects headers of 70 kB. */
const visible_ascii = new RegExp(`^[\\x21-\\x7e]{1,${token_length_max}}$`)

const unavailable = ({ detail }: BackendUnavailable) => new IdentityUnavailable({ message: detail })

const requestValidation = Effect.fnUntraced(function* (
  session: KeystoneSession["Service"],
  subject: Redacted.Redacted<string>,
) {
  const call = keystoneCall(session, "GET", "/auth/tokens?nocatalog", { subject })
  const response = yield* Effect.mapError(session.sendAsService(call), unavailable)
  // 403 if the trustor of a trust lost a role, or the service user lacks its role.
  if (response.status === 404 || (response.status === 403 && !isOurFault(response))) {
    return yield* refused("unknown")
  }
  if (response.status !== 200) return yield* unavailable(unexpected(keystone, response))
  const { token } = yield* Effect.mapError(
    decodeResponse(Validated, keystone, response),
    unavailable,
  )
  const expires_ms = Date.parse(token.expires_at)
  // Keystone has validated it: an unparsable time is no reason to reject it.
  return { caller: callerOf(token), expires_ms: Number.isNaN(expires_ms) ? Infinity : expires_ms }
})

const isOurFault = ({ bytes }: CloudResponse) =>
  Buffer.from(bytes).toString("utf8").includes("identity:validate_token")

const callerOf = ({
  user,
  project,
  domain,
  roles = [],
}: (typeof Validated.Type)["token"]): Caller => ({
  actor: `user:${user.id}`,
  kind: "keystone",
  scopes: new Set(),
  roles: new Set(roles.map(({ name }) => name)),
  user_id: user.id,
  user_domain_id: user.domain.id,
  ...(project !== undefined && {
    project_id: project.id,
    project_domain_id: project.domain.id,
  }),
  ...(domain !== undefined && { domain_id: domain.id }),
})
