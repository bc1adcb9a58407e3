/** The grants of tokens, and requests for tokens. Source: decisions, "secrets and trusts". */
import { Schema } from "effect"

/** Reading blobs and the cluster's state; writing and deleting blobs; changing the cluster. */
export const scopes = ["blobs:read", "blobs:write", "cluster:admin"] as const

export type Scope = (typeof scopes)[number]

export const isScope = Schema.is(Schema.Literals(scopes))

/** A role's name in policy rules. */
export const role_pattern = /^\w[\w.-]{0,63}$/u
/** The id of a project, domain or user in Keystone and similar services: at most 128 characters. */
const principal_id_pattern = /^[\w.:@-]{1,128}$/u
/** A name for use in the log. */
export const principal_name_pattern = /^[\w.:@ -]{1,128}$/u

export const PrincipalId = Schema.String.check(Schema.isPattern(principal_id_pattern))

/** Ten years, in seconds: no machine lives longer. */
export const ttl_s_max = 315_360_000
/** No policy file has more roles. */
export const roles_max = 64

/** The name of a token in the log; operators revoke it by this name. */
export const TokenName = Schema.String.check(Schema.isPattern(principal_name_pattern))

/** A token to issue; without `ttl_seconds` it does not expire. */
export const TokenRequest = Schema.Struct({
  name: Schema.optionalKey(TokenName).annotateKey({
    description:
      "Name of the token in the log, by which it is revoked. Several tokens may share a name.",
  }),
  scopes: Schema.Array(Schema.Literals(scopes))
    .check(Schema.isMaxLength(scopes.length))
    .annotateKey({ description: "Scopes of blob storage." }),
  roles: Schema.Array(Schema.String.check(Schema.isPattern(role_pattern)))
    .check(Schema.isMaxLength(roles_max))
    .annotateKey({ description: "Roles, such as `member` or `admin`. Policy rules use them." }),
  project_id: Schema.optionalKey(PrincipalId).annotateKey({
    description: "Project that the token is scoped to.",
  }),
  domain_id: Schema.optionalKey(PrincipalId).annotateKey({
    description: "Domain that the token is scoped to.",
  }),
  user_id: Schema.optionalKey(PrincipalId).annotateKey({
    description: "User that the token acts for.",
  }),
  ttl_seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: ttl_s_max })),
  ).annotateKey({ description: "Seconds until it expires. Absent: it does not expire." }),
})

export type TokenRequest = typeof TokenRequest.Type
