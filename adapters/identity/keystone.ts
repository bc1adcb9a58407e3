/**
 * Callers by Keystone: a token counts for as long as Keystone says so, asked at every request.
 *
 * Headers that say who somebody is (`X-Roles` and the like) are never read: they are for services
 * behind a proxy that makes them. Source: document 2 §5.
 */
import { Cache, Clock, Duration, Effect, Redacted, Schema } from "effect"
import { knownTokens } from "#adapters/identity/known-token.ts"
import { type Answer, decoded, unexpected } from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall, token_length_max } from "#adapters/keystone/session.ts"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, IdentityUnavailable, Unauthenticated } from "#gateway/identity.ts"
import type { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { PrincipalId } from "#schemas/token.ts"

/** Tokens that are asked about at the same time. */
const tokens_max = 10_000

const ms_per_s = 1000

const keystone = { service: "Keystone" } as const

const Domain = Schema.Struct({ id: PrincipalId })
const Validated = Schema.Struct({
  token: Schema.Struct({
    user: Schema.Struct({ id: PrincipalId, domain: Domain }),
    expires_at: Schema.String,
    /** Absent where the token has no scope. */
    roles: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String }))),
    project: Schema.optionalKey(Schema.Struct({ id: PrincipalId, domain: Domain })),
    domain: Schema.optionalKey(Domain),
  }),
})

const refused = (reason: Unauthenticated["reason"]) => Effect.fail(new Unauthenticated({ reason }))

/**
 * Asks Keystone about each token, once for all requests that show it at the same time, and not
 * again for `cache_s` seconds where it was valid. What cannot be a token is refused unasked.
 */
export const keystoneTokens = Effect.fnUntraced(function* (cache_s: number) {
  const session = yield* KeystoneSession
  const known = knownTokens(yield* Clock.Clock, cache_s * ms_per_s)
  const validate = Effect.fnUntraced(function* (subject: Redacted.Redacted<string>) {
    const now_ms = yield* Clock.currentTimeMillis
    const { caller, expires_ms } = yield* validated(session, subject)
    known.keep(Redacted.value(subject), caller, now_ms, expires_ms)
    return caller
  })
  // For those who ask at the same time; what was found is known from then on.
  const asked = yield* Cache.makeWith(validate, {
    capacity: tokens_max,
    timeToLive: () => Duration.zero,
  })
  const authenticate: Authenticate = ({ token }) => {
    const text = token === undefined ? "" : token()
    if (text === "") return refused("missing")
    if (!visible.test(text)) return refused("malformed")
    const caller = known.find(text)
    return caller === undefined ? Cache.get(asked, Redacted.make(text)) : Effect.succeed(caller)
  }
  return authenticate
})

/** Keystone drops the connection at a header of 70 kB, and its tokens are some hundred long. */
const visible = new RegExp(`^[\\x21-\\x7e]{1,${token_length_max}}$`)

const down = ({ detail }: BackendUnavailable) => new IdentityUnavailable({ message: detail })

const validated = Effect.fnUntraced(function* (
  session: KeystoneSession["Service"],
  subject: Redacted.Redacted<string>,
) {
  const call = keystoneCall(session, "GET", "/auth/tokens?nocatalog", { subject })
  const answer = yield* Effect.mapError(session.askAsService(call), down)
  // A trust's token whose trustor lost a role is 403, and so is a service user without its role.
  if (answer.status === 404 || (answer.status === 403 && !isOurFault(answer))) {
    return yield* refused("unknown")
  }
  if (answer.status !== 200) return yield* down(unexpected(keystone, answer))
  const { token } = yield* Effect.mapError(decoded(Validated, keystone, answer), down)
  const expires_ms = Date.parse(token.expires_at)
  // Keystone has found it good: a time of another form is no reason to refuse it.
  return { caller: callerOf(token), expires_ms: Number.isNaN(expires_ms) ? Infinity : expires_ms }
})

const isOurFault = ({ bytes }: Answer) =>
  Buffer.from(bytes).toString("utf8").includes("identity:validate_token")

const callerOf = ({
  user,
  project,
  domain,
  roles = [],
}: (typeof Validated.Type)["token"]): Caller => ({
  actor: `keystone:${user.id}`,
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
