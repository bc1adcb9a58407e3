/**
 * Known domains. This service never creates domains: a domain is known if any of its resources is.
 *
 * Source: document 2 §2 Rollout descriptor; DECISIONS, document 2, domains, rollouts.
 */
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { DomainTables } from "#projections/share-protection/domain.ts"
import type { TargetTables } from "#projections/share-protection/target.ts"
import type { TargetTemplateTables } from "#projections/share-protection/target-template.ts"
import type { WorkerTables } from "#projections/share-protection/worker.ts"
import type { DomainId } from "#schemas/share-protection/id.ts"

type Tables = DomainTables & TargetTables & TargetTemplateTables & WorkerTables

/** The domains, of those given, that have or had a worker, a setting, a template or a target. */
export const knownDomains = (db: Kysely<Tables>, ids: ReadonlyArray<DomainId>) =>
  Effect.promise(async () => {
    const found = await sql<{ readonly id: DomainId }>`
      select id from (
        select id from share_protection_domain
        union select domain_id from share_protection_worker
        union select domain_id from share_protection_target_template
        union select domain_id from share_protection_target
      ) as known where id in (${sql.join(ids)})`.execute(db)
    return new Set(found.rows.map(({ id }) => id))
  })
