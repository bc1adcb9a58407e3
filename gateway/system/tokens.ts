import { Effect, Redacted } from "effect"
import { TokenIssuer } from "#gateway/identity.ts"
import { BackendUnavailable } from "#schemas/system/rejection.ts"
import type { TokenRequest } from "#schemas/token.ts"

/** Issues a token of the embedded identity. It is shown this once. */
export const issue = Effect.fnUntraced(function* (payload: typeof TokenRequest.Type) {
  const issuer = yield* TokenIssuer
  const token = yield* Effect.mapError(
    issuer.issue(payload),
    ({ message }) => new BackendUnavailable({ detail: message }),
  )
  return { token: Redacted.value(token) }
})
