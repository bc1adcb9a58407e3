import { Effect } from "effect"
import { SecretKeeper } from "#gateway/identity.ts"
import { origin } from "#gateway/request-context.ts"
import { notIssued } from "#gateway/system/not-issued.ts"
import type { SecretRequest } from "#schemas/secret.ts"

/** Keeps a secret of a project; nobody is shown its payload but who may use it. */
export const putSecret = Effect.fnUntraced(function* (payload: SecretRequest) {
  const keeper = yield* SecretKeeper
  const href = yield* Effect.catch(keeper.put(payload, yield* origin), notIssued)
  return { href }
})
