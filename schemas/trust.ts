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
  project_id: Token.annotateKey({ description: "Project that the trust is for." }),
  user_id: Schema.optionalKey(PrincipalId).annotateKey({
    description: "User who grants the trust. Absent: the project as a whole.",
  }),
  roles: Schema.Array(Schema.String.check(Schema.isPattern(role_pattern)))
    .check(Schema.isMinLength(1), Schema.isMaxLength(roles_max))
    .annotateKey({ description: "Roles that the service gets in the project." }),
  ttl_seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: ttl_s_max })),
  ).annotateKey({ description: "Seconds until it expires. Absent: it does not expire." }),
})

export type TrustRequest = typeof TrustRequest.Type
