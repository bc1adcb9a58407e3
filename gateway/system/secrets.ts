import { Effect } from "effect"
import { SecretKeeper } from "#gateway/identity.ts"
import type { SecretRequest } from "#schemas/secret.ts"
import { BackendUnavailable } from "#schemas/system/rejection.ts"

/** Keeps a secret of a project; nobody is shown its payload but who may use it. */
export const putSecret = Effect.fnUntraced(function* (payload: SecretRequest) {
  const keeper = yield* SecretKeeper
  const href = yield* Effect.mapError(
    keeper.put(payload),
    ({ message }) => new BackendUnavailable({ detail: message }),
  )
  return { href }
})
