/** Quotas of a project. Source: DECISIONS, document 2, quotas, domains. */
import { Effect } from "effect"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import type { DomainId } from "#schemas/share-protection/id.ts"
import type { Quotas } from "#schemas/share-protection/ledger.ts"

/** The domain's own limit if one applies, else the configured one. */
export const quotaOf = Effect.fnUntraced(function* (
  domain_id: DomainId | null,
  what: keyof Quotas,
) {
  const { settings } = yield* Deployment
  const { db } = yield* ShareProtectionModel
  const domain = domain_id === null ? undefined : yield* findDomain(db, domain_id)
  return domain?.applied_quotas?.[what] ?? settings().quota[what]
})
