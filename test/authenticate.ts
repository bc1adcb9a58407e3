import { Effect } from "effect"
import type { Authenticate } from "#gateway/identity.ts"

/** Who this token belongs to. */
export const asked = (authenticate: Authenticate, token: string | undefined) =>
  authenticate({ token: token === undefined ? undefined : () => token })

/** The reason of a refusal, or the tag of what went wrong. */
export const reason = (authenticate: Authenticate, token: string | undefined) =>
  Effect.map(Effect.flip(asked(authenticate, token)), (error) =>
    error._tag === "Unauthenticated" ? error.reason : error._tag,
  )
