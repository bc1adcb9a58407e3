/** Domains' own settings. Source: document 2 §4 PATCH domains; DECISIONS, document 2, domains. */
import { type Kysely, sql } from "kysely"
import { DomainEvent } from "#events/share-protection/domain.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/share-protection/table.ts"
import { statement } from "#projections/statement.ts"
import type { Domain } from "#schemas/share-protection/domain.ts"
import type { DomainId } from "#schemas/share-protection/id.ts"

/** Null where the configuration's own holds. */
interface DomainRow extends Required<Domain> {
  /** The quotas that hold; what was configured since waits. */
  readonly applied_quotas: Domain["quotas"] | null
}

export interface DomainTables {
  readonly share_protection_domain: Stored<DomainRow>
}

const domains = table<DomainRow>({
  name: "share_protection_domain",
  columns: {
    id: "text",
    min_workers: "integer?",
    max_workers: "integer?",
    worker_boot_image: "text?",
    quotas: "json?",
    applied_quotas: "json?",
    pending: "boolean",
    applied_at: "text?",
    created_at: "text",
    updated_at: "text",
  },
})

const unset = {
  min_workers: null,
  max_workers: null,
  worker_boot_image: null,
  quotas: null,
  applied_quotas: null,
}

/** What is configured holds from here. */
const apply = statement<DomainTables>()<Pick<DomainRow, "id" | "applied_at">>(
  (db, { id, applied_at }) =>
    db
      .updateTable("share_protection_domain")
      .where("id", "=", id)
      .set({ pending: 0, applied_at, applied_quotas: sql`quotas` }),
)

const project = (event: DomainEvent, { id: domain_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = domain_id as DomainId
  return DomainEvent.match(event, {
    DomainConfigured: ({ type: _, ...changes }) => [
      domains.ensure({
        id,
        ...unset,
        pending: true,
        applied_at: null,
        created_at: at,
        updated_at: at,
      }),
      domains.update(id, { ...changes, pending: true, updated_at: at }),
    ],
    DomainApplied: () => [apply({ id, applied_at: at })],
  })
}

export const domain = projection<DomainTables, DomainEvent>({
  part: "share-protection.domain",
  event: DomainEvent,
  create: ({ schema }) => domains.create(schema),
  project,
})

/** Undefined while nothing was configured. */
export const findDomain = (db: Kysely<DomainTables>, id: DomainId) => findRow(db, domains, id)
