/** Domains' own settings. Source: document 2 §4 PATCH domains; DECISIONS, document 2, domains. */
import type { Schema } from "effect"
import { type Kysely, sql } from "kysely"
import { DomainEvent } from "#events/share-protection/domain.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { statement } from "#projections/statement.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import { domain_row } from "#schemas/share-protection/domain.ts"
import type { DomainId } from "#schemas/share-protection/id.ts"

type DomainRow = Schema.Struct<typeof domain_row>["Type"]

export interface DomainTables {
  readonly share_protection_domain: Stored<DomainRow>
}

const domains = table({ name: "share_protection_domain", fields: domain_row })

/** The configuration applies from here. */
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
        ...nullsOf(domain_row),
        pending: true,
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

/** Undefined while nothing is configured. */
export const findDomain = (db: Kysely<DomainTables>, id: DomainId) => findRow(db, domains, id)
