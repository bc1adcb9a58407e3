/**
 * Issues and revokes credentials for operators: tokens, trusts and secrets.
 *
 * Source: decisions, "secrets and trusts"; 0153.
 */
import { Effect, Redacted } from "effect"
import {
  type IdentityUnavailable,
  SecretKeeper,
  TokenIssuer,
  TrustIssuer,
} from "#gateway/identity.ts"
import { KeyReused, origin } from "#gateway/request-context.ts"
import type { SecretRequest } from "#schemas/secret.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import type { TokenRequest } from "#schemas/token.ts"
import type { TrustRequest } from "#schemas/trust.ts"

const unavailable = ({ message }: IdentityUnavailable) =>
  new BackendUnavailable({ detail: message })

/**
 * Maps the failure to 422 if the Idempotency-Key was used with a different request, else to 503.
 */
const notIssued = (failure: IdentityUnavailable): Effect.Effect<never, BackendUnavailable> =>
  failure.is_reused === true ? Effect.die(new KeyReused()) : Effect.fail(unavailable(failure))

/**
 * Issues a token. Only this response contains it, and that of a retry with the same
 * Idempotency-Key.
 */
export const issueToken = Effect.fnUntraced(function* (payload: typeof TokenRequest.Type) {
  const issuer = yield* TokenIssuer
  const token = yield* Effect.catch(issuer.issue(payload, yield* origin), notIssued)
  return { token: Redacted.value(token) }
})

/** Revokes all tokens of a name. */
export const revokeTokens = Effect.fnUntraced(function* (name: string) {
  const issuer = yield* TokenIssuer
  const revoked = yield* Effect.mapError(issuer.revoke(name, yield* origin), unavailable)
  return revoked > 0
    ? { revoked }
    : yield* new NotFound({ detail: "No valid token has this name." })
})

/** Creates a trust for this service. */
export const createTrust = Effect.fnUntraced(function* (payload: TrustRequest) {
  const issuer = yield* TrustIssuer
  return { trust_id: yield* Effect.catch(issuer.issue(payload, yield* origin), notIssued) }
})

export const no_trust = "No such trust."

/** Revokes a trust, and invalidates all tokens obtained with it. */
export const revokeTrust = Effect.fnUntraced(function* (trust_id: string) {
  const issuer = yield* TrustIssuer
  const is_revoked = yield* Effect.mapError(issuer.revoke(trust_id, yield* origin), unavailable)
  return is_revoked ? { trust_id } : yield* new NotFound({ detail: no_trust })
})

/** Stores a secret of a project; only the project's own callers can read its payload. */
export const putSecret = Effect.fnUntraced(function* (payload: SecretRequest) {
  const keeper = yield* SecretKeeper
  const href = yield* Effect.catch(keeper.put(payload, yield* origin), notIssued)
  return { href }
})
