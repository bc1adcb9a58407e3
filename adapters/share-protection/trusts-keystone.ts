/**
 * Keystone's trusts. Keystone reports an unusable trust with the same status as a wrong password,
 * so a further request finds out which it is.
 *
 * Source: document 2 §1, §5; decisions of document 2, identity, secrets, shares.
 */
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
import {
  type Delegation,
  denials,
  type TrustRequester,
  Trusts,
  trust_remaining_s_min,
} from "#actors/share-protection/ports/trusts.ts"
import { type CloudResponse, decodeResponse, unexpected } from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall } from "#adapters/keystone/session.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

type Session = KeystoneSession["Service"]

/** Trusts whose trustee is this session's user. */
export const trustsKeystone = Layer.effect(
  Trusts,
  Effect.map(KeystoneSession, (s) => trustsOf(s)),
)

const keystone = { service: "Keystone" } as const
const ms_per_s = 1000

const Trust = Schema.Struct({
  trust: Schema.Struct({
    project_id: Schema.NullOr(Schema.String),
    trustor_user_id: Schema.String,
    trustee_user_id: Schema.String,
    impersonation: Schema.Boolean,
    remaining_uses: Schema.NullOr(Schema.Int),
    expires_at: Schema.NullOr(Schema.String),
  }),
})

const Scoped = Schema.Struct({
  token: Schema.Struct({ project: Schema.Struct({ id: ProjectId }) }),
})

const denied = (why: keyof typeof denials) => new TrustAccessDenied({ detail: denials[why] })

/** Keystone's 404 means that the trust does not exist, 403 that it belongs to somebody else. */
const findTrust = Effect.fnUntraced(function* (session: Session, trust_id: string) {
  const path = `/OS-TRUST/trusts/${encodeURIComponent(trust_id)}`
  const response = yield* session.sendAsService(keystoneCall(session, "GET", path))
  if (response.status === 404) return yield* denied("gone")
  if (response.status === 403) return yield* denied("foreign")
  if (response.status !== 200) return yield* unexpected(keystone, response)
  return (yield* decodeResponse(Trust, keystone, response)).trust
})

const trustsOf = (session: Session): Trusts["Service"] => {
  const verify = Effect.fnUntraced(function* (trust_id: string, by: TrustRequester) {
    const trust = yield* findTrust(session, trust_id)
    const { service_user } = yield* session.service
    const { trustee_user_id: trustee, trustor_user_id: trustor } = trust
    const is_ours = trustee === service_user.id && trust.project_id === by.project_id
    const is_trustor = by.user_id === null || by.user_id === trustor
    if (!is_ours || !is_trustor) return yield* denied("foreign")
    const now = yield* Clock.currentTimeMillis
    const left_ms = trust.expires_at === null ? Infinity : Date.parse(trust.expires_at) - now
    const is_long_enough = left_ms >= trust_remaining_s_min * ms_per_s
    const is_suitable = trust.impersonation && trust.remaining_uses === null && is_long_enough
    if (!is_suitable) return yield* denied("unfit")
  })
  const redeem = Effect.fnUntraced(function* (trust_id: string) {
    const response = yield* session.authenticate({ "OS-TRUST:trust": { id: trust_id } })
    if (response.status !== 201) return yield* refusalOf(session, trust_id, response)
    const { project } = (yield* decodeResponse(Scoped, keystone, response)).token
    const token = Redacted.make(response.headers["x-subject-token"] ?? "")
    const delegation: Delegation = { project_id: project.id, token }
    return delegation
  })
  return { verify, redeem, service: session.service }
}

/** Why Keystone issued no token for the trust: checks our own password first, then the trust. */
const refusalOf = Effect.fnUntraced(function* (
  session: Session,
  trust_id: string,
  response: CloudResponse,
) {
  if (response.status !== 401 && response.status !== 403)
    return yield* unexpected(keystone, response)
  if (response.status === 401) yield* session.verifyCredentials
  const { trustee_user_id } = yield* findTrust(session, trust_id)
  const { service_user } = yield* session.service
  if (trustee_user_id !== service_user.id) return yield* denied("foreign")
  if (response.status === 403) return yield* denied("powerless")
  const detail = "Keystone rejects an existing trust: it may have just changed."
  return yield* new BackendUnavailable({ detail })
})
