/**
 * The trusts of the embedded identity. They fail like Keystone's: a revoked or expired trust with
 * 401, one whose trustor lacks a role with 403.
 *
 * Source: DECISIONS, document 2, identity, secrets, shares.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Clock, Effect, Layer, Option, Redacted, Schema } from "effect"
import { v7 } from "uuid"
import {
  type Delegation,
  denials,
  type TrustRequester,
  Trusts,
  trust_remaining_s_min,
} from "#actors/share-protection/ports/trusts.ts"
import { derivedId, key_reused } from "#adapters/identity/repeated-credential.ts"
import {
  type TrustRecord,
  type TrustStore,
  withAssignment,
} from "#adapters/share-protection/trust-store.ts"
import { type IdentityUnavailable, TrustIssuer } from "#gateway/identity.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import type { TrustRequest } from "#schemas/trust.ts"

/** Trusts and TrustIssuer over this store. */
export const trustsEmbedded = (store: TrustStore) =>
  Layer.mergeAll(
    Layer.succeed(Trusts, trustsOf(store)),
    Layer.succeed(TrustIssuer, trustIssuer(store)),
  )

/** Returns the project of a trust's token, if the token is valid. */
export type Inspect = (
  delegation: Delegation,
) => Effect.Effect<ProjectId, TrustAccessDenied | BackendUnavailable>

const denied = (why: keyof typeof denials) =>
  Effect.fail(new TrustAccessDenied({ detail: denials[why] }))

const backend = ({ message }: IdentityUnavailable) => new BackendUnavailable({ detail: message })

const ms_per_s = 1000

/** The trust, unless it is missing, revoked or expired. */
const findTrust = Effect.fnUntraced(function* (store: TrustStore, trust_id: string) {
  const now = yield* Clock.currentTimeMillis
  const trust = store.find(trust_id)
  if (trust === undefined || trust.revoked_at !== null) return yield* denied("gone")
  if (trust.expires_at !== null && now >= trust.expires_at) return yield* denied("gone")
  return { trust, now }
})

const lacksRoles = (store: TrustStore, { trustor_user_id, project_id, roles }: TrustRecord) => {
  if (trustor_user_id === null) return false
  const assigned = store.rolesOf(trustor_user_id, project_id)
  return !roles.every((role) => assigned.has(role))
}

/** The port over an open store. */
export const trustsOf = (store: TrustStore): Trusts["Service"] => {
  const { service_user } = store.service
  const verify = Effect.fnUntraced(function* (trust_id: string, by: TrustRequester) {
    const { trust, now } = yield* findTrust(store, trust_id)
    const { project_id, trustor_user_id: trustor, trustee_user_id: trustee, expires_at } = trust
    const is_trustor = by.user_id === null || trustor === null || by.user_id === trustor
    const is_ours = trustee === service_user.id && project_id === by.project_id
    if (!is_ours || !is_trustor) return yield* denied("foreign")
    const is_long_enough =
      expires_at === null || expires_at - now >= trust_remaining_s_min * ms_per_s
    const is_suitable = trust.impersonation && trust.remaining_uses === null && is_long_enough
    if (!is_suitable) return yield* denied("unfit")
  })
  const redeem = Effect.fnUntraced(function* (trust_id: string) {
    const { trust, now } = yield* findTrust(store, trust_id)
    if (trust.remaining_uses !== null && trust.remaining_uses <= 0) return yield* denied("gone")
    if (trust.trustee_user_id !== service_user.id) return yield* denied("foreign")
    if (lacksRoles(store, trust)) return yield* denied("powerless")
    if (trust.remaining_uses !== null) yield* Effect.mapError(countUse(store, trust_id), backend)
    const token = signToken(store, { trust_id, expires_at: now + token_lifetime_s * ms_per_s })
    return { project_id: ProjectId.make(trust.project_id), token: Redacted.make(token) }
  })
  return { verify, redeem, service: Effect.succeed(store.service) }
}

const countUse = (store: TrustStore, used: string) =>
  store.update(({ trusts, ...rest }) => ({
    ...rest,
    trusts: trusts.map((trust) =>
      trust.trust_id === used && trust.remaining_uses !== null
        ? { ...trust, remaining_uses: trust.remaining_uses - 1 }
        : trust,
    ),
  }))

/** Lifetime of a trust's token: an hour, like Keystone's, and at most that of the trust. */
const token_lifetime_s = 3600
/** So that two tokens of the same moment differ. */
const nonce_bytes = 16

const Claims = Schema.fromJsonString(
  Schema.Struct({ trust_id: Schema.String, expires_at: Schema.Int, nonce: Schema.String }),
)

const tagOf = ({ key }: TrustStore, claims: string) =>
  createHmac("sha256", key).update("trust-token\0").update(claims).digest()

const signToken = (store: TrustStore, content: { trust_id: string; expires_at: number }) => {
  const nonce = randomBytes(nonce_bytes).toString("base64url")
  const claims = Buffer.from(Schema.encodeSync(Claims)({ ...content, nonce })).toString("base64url")
  return `${claims}.${tagOf(store, claims).toString("base64url")}`
}

/**
 * Returns the project of a token. Looks up the trust on each call, so that revocation takes effect
 * immediately.
 */
export const inspector =
  (store: TrustStore): Inspect =>
  ({ token }) =>
    Effect.gen(function* () {
      const [claims = "", tag = ""] = Redacted.value(token).split(".")
      const expected = tagOf(store, claims)
      const actual = Buffer.from(tag, "base64url")
      const is_ours = actual.length === expected.length && timingSafeEqual(actual, expected)
      if (!is_ours) return yield* denied("gone")
      const text = Buffer.from(claims, "base64url").toString()
      const payload = Option.getOrUndefined(Schema.decodeUnknownOption(Claims)(text))
      if (payload === undefined) return yield* denied("gone")
      const { trust, now } = yield* findTrust(store, payload.trust_id)
      if (now >= payload.expires_at) return yield* denied("gone")
      if (lacksRoles(store, trust)) return yield* denied("powerless")
      return ProjectId.make(trust.project_id)
    })

/** Adds a trust for this service, and assigns the trustor the roles that it delegates. */
export const addTrust = Effect.fnUntraced(function* (
  store: TrustStore,
  trust_id: string,
  { project_id, user_id, roles, ttl_seconds }: TrustRequest,
) {
  const now = yield* Clock.currentTimeMillis
  const trust: TrustRecord = {
    trust_id,
    project_id,
    trustor_user_id: user_id ?? null,
    trustee_user_id: store.service.service_user.id,
    roles,
    impersonation: true,
    remaining_uses: null,
    created_at: now,
    expires_at: ttl_seconds === undefined ? null : now + ttl_seconds * ms_per_s,
    revoked_at: null,
  }
  yield* store.update(({ assignments, trusts }) => ({
    assignments:
      user_id === undefined
        ? assignments
        : withAssignment(assignments, { user_id, project_id, roles }),
    trusts: trusts.some((one) => one.trust_id === trust_id) ? trusts : [...trusts, trust],
  }))
})

/** Whether this trust matches the request. */
const matchesRequest = (
  { project_id, trustor_user_id, roles, created_at, expires_at }: TrustRecord,
  request: TrustRequest,
) => {
  const { ttl_seconds, user_id = null } = request
  const granted_ms = expires_at === null ? undefined : expires_at - created_at
  const requested_ms = ttl_seconds === undefined ? undefined : ttl_seconds * ms_per_s
  const is_same = project_id === request.project_id && trustor_user_id === user_id
  return is_same && granted_ms === requested_ms && roles.join() === request.roles.join()
}

/** Creates and revokes trusts. See the port. */
export const trustIssuer = (store: TrustStore): TrustIssuer["Service"] => ({
  issue: Effect.fnUntraced(function* (request, origin) {
    const derived = derivedId(store.key, "trust", origin)
    const trust_id = derived ?? v7()
    if (store.find(trust_id) === undefined) yield* addTrust(store, trust_id, request)
    // A concurrent request with the same key may have created it.
    const stored = store.find(trust_id)
    if (derived !== undefined && !(stored && matchesRequest(stored, request)))
      return yield* key_reused
    return trust_id
  }),
  revoke: Effect.fnUntraced(function* (trust_id, { command_id, fingerprint } = {}) {
    const now = yield* Clock.currentTimeMillis
    const trust = store.find(trust_id)
    if (trust === undefined) return false
    const revoked_by = fingerprint === undefined ? undefined : command_id
    if (trust.revoked_at !== null)
      return revoked_by !== undefined && trust.revoked_by === revoked_by
    const revoked = { revoked_at: now, ...(revoked_by !== undefined && { revoked_by }) }
    yield* store.update(({ trusts, ...rest }) => ({
      ...rest,
      trusts: trusts.map((one) => (one.trust_id === trust_id ? { ...one, ...revoked } : one)),
    }))
    return true
  }),
})
