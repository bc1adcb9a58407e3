/** A credential that was not made, in the words of these paths. */
import { Effect } from "effect"
import type { IdentityUnavailable } from "#gateway/identity.ts"
import { KeyReused } from "#gateway/request-context.ts"
import { BackendUnavailable } from "#schemas/system/rejection.ts"

/** 422 where the request's Idempotency-Key came with something else before, else 503. */
export const notIssued = ({
  message,
  is_reused,
}: IdentityUnavailable): Effect.Effect<never, BackendUnavailable> =>
  is_reused === true
    ? Effect.die(new KeyReused())
    : Effect.fail(new BackendUnavailable({ detail: message }))
