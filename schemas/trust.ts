/**
 * Requests to create a trust in the embedded identity service. Source: decisions, "secrets and
 * trusts".
 */
import { Schema } from "effect"
import { Token } from "#schemas/message.ts"
import { PrincipalId, role_pattern, roles_max, ttl_s_max } from "#schemas/token.ts"

/** A trust's id; Keystone's have 32 hex digits. */
export const TrustId = Token

/** A trust for this service; without `ttl_seconds` it does not expire. */
export const TrustRequest = Schema.Struct({
  project_id: Token,
  /** The trustor; absent: the project as a whole. */
  user_id: Schema.optionalKey(PrincipalId),
  /** The roles that the service gets in the project, where the trustor receives them, too. */
  roles: Schema.Array(Schema.String.check(Schema.isPattern(role_pattern))).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(roles_max),
  ),
  ttl_seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: ttl_s_max })),
  ),
})

export type TrustRequest = typeof TrustRequest.Type
