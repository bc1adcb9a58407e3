import { Effect } from "effect"
import type { OwnTokens } from "#adapters/identity/identity.ts"
import type { Authenticate } from "#gateway/identity.ts"

/** Who this token belongs to. */
export const asked = (authenticate: Authenticate, token: string | undefined) =>
  authenticate({ token: token === undefined ? undefined : () => token })

/** The reason of a refusal, or the tag of what went wrong. */
export const reason = (authenticate: Authenticate, token: string | undefined) =>
  Effect.map(Effect.flip(asked(authenticate, token)), (error) =>
    error._tag === "Unauthenticated" ? error.reason : error._tag,
  )

/** The tokens of one machine, where the log has none. */
export const ownTokens = (store: OwnTokens["store"]): OwnTokens => ({
  store,
  issued: { find: () => undefined, lookUp: () => Effect.undefined },
})
