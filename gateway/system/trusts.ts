import { Effect } from "effect"
import { type IdentityUnavailable, TrustIssuer } from "#gateway/identity.ts"
import { origin } from "#gateway/request-context.ts"
import { notIssued } from "#gateway/system/not-issued.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import type { TrustRequest } from "#schemas/trust.ts"

const unavailable = ({ message }: IdentityUnavailable) =>
  new BackendUnavailable({ detail: message })

/** Makes a trust for this service. */
export const createTrust = Effect.fnUntraced(function* (payload: TrustRequest) {
  const issuer = yield* TrustIssuer
  return { trust_id: yield* Effect.catch(issuer.issue(payload, yield* origin), notIssued) }
})

/** What is said of a trust that is not there, or not any more. */
export const no_trust = "No such trust."

/** Revokes a trust: what was redeemed of it is worth nothing from then on. */
export const revokeTrust = Effect.fnUntraced(function* (trust_id: string) {
  const issuer = yield* TrustIssuer
  const was_there = yield* Effect.mapError(issuer.revoke(trust_id, yield* origin), unavailable)
  return was_there ? { trust_id } : yield* new NotFound({ detail: no_trust })
})
