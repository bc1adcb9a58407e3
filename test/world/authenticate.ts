import { Effect } from "effect"
import type { OwnTokens } from "#adapters/identity/identity.ts"
import type { Authenticate } from "#gateway/identity.ts"

/** The caller that this token authenticates. */
export const callerOf = (authenticate: Authenticate, token: string | undefined) =>
  authenticate({ token: token === undefined ? undefined : () => token })

/** The reason of a rejection, or the tag of the error. */
export const reason = (authenticate: Authenticate, token: string | undefined) =>
  Effect.map(Effect.flip(callerOf(authenticate, token)), (error) =>
    error._tag === "Unauthenticated" ? error.reason : error._tag,
  )

/** A machine's own tokens, without tokens in the log. */
export const ownTokens = (store: OwnTokens["store"]): OwnTokens => ({
  store,
  issued: { find: () => undefined, lookUp: () => Effect.undefined },
})
