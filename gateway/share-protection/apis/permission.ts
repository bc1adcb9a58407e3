/**
 * Sentences about access in descriptions of operations.
 *
 * Source: DECISIONS, document 2, default policy rules; `default-rules.ts`.
 */

export const for_tenants = "Requires the role `member` or `admin` in the project of the token."

export const for_operators = "Requires the role `admin`."

export const for_domain_owners =
  "Requires the role `svc_domain_owner` and a token that is scoped to a domain."

/** Operations on targets, which tenants own in Shape A and domains in Shape B. */
export const for_target_owners =
  "Requires the role `member` or `admin` in the project of the token; in Shape B, the role " +
  "`svc_domain_owner` and a token that is scoped to a domain."

export const for_target_readers =
  "Requires the role `member` or `admin` in the project of the token; in Shape B, " +
  "`svc_domain_owner` with a token that is scoped to a domain is sufficient too."
