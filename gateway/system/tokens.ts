/** Issued tokens: what operators ask of them. Source: decisions, "secrets and trusts"; 0153. */
import { Effect, Redacted } from "effect"
import { type IdentityUnavailable, TokenIssuer } from "#gateway/identity.ts"
import { origin } from "#gateway/request-context.ts"
import { notIssued } from "#gateway/system/not-issued.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import type { TokenRequest } from "#schemas/token.ts"

const unavailable = ({ message }: IdentityUnavailable) =>
  new BackendUnavailable({ detail: message })

/** Issues a token. It is shown this once, and to a retry under the same Idempotency-Key. */
export const issueToken = Effect.fnUntraced(function* (payload: typeof TokenRequest.Type) {
  const issuer = yield* TokenIssuer
  const token = yield* Effect.catch(issuer.issue(payload, yield* origin), notIssued)
  return { token: Redacted.value(token) }
})

/** Revokes all tokens of a name. */
export const revokeTokens = Effect.fnUntraced(function* (name: string) {
  const issuer = yield* TokenIssuer
  const revoked = yield* Effect.mapError(issuer.revoke(name, yield* origin), unavailable)
  return revoked > 0 ? { revoked } : yield* new NotFound({ detail: "No token of that name." })
})
