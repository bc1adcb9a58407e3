/** Reconciliation as operators see it. Source: document 2 §2 Reconciliation status. */
import { Effect, Schema, Struct } from "effect"
import type { Kysely } from "kysely"
import { ReconciliationEvent } from "#events/share-protection/reconciliation.ts"
import { projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import { ReconciliationStatus } from "#schemas/share-protection/reconciliation.ts"

const fields = {
  id: Schema.String,
  ...Struct.pick(ReconciliationStatus.fields, ["status", "last_run_at", "drift", "drift_count"]),
}
type ReconciliationRow = Schema.Struct<typeof fields>["Type"]

export interface ReconciliationTables {
  readonly share_protection_reconciliation: Stored<ReconciliationRow>
}

const reconciliations = table({ name: "share_protection_reconciliation", fields })

/** Before the first run. */
const fresh = (id: string): ReconciliationRow => ({
  id,
  status: "idle",
  last_run_at: null,
  drift: [],
  drift_count: 0,
})

export const reconciliation = projection<ReconciliationTables, ReconciliationEvent>({
  part: "share-protection.reconciliation",
  event: ReconciliationEvent,
  create: ({ schema }) => reconciliations.create(schema),
  project: (event, { id }) =>
    ReconciliationEvent.match(event, {
      // It stays idle until the requested run begins.
      ReconciliationTriggered: () => [],
      ReconciliationStarted: ({ at }) => [
        reconciliations.ensure(fresh(id)),
        reconciliations.update(id, { status: "running", last_run_at: at }),
      ],
      ReconciliationFinished: ({ drift, drift_count }) => [
        reconciliations.update(id, { status: "idle", drift, drift_count }),
      ],
    }),
})

export const findReconciliation = (db: Kysely<ReconciliationTables>, id = "main") =>
  Effect.map(findRow(db, reconciliations, id), (row) => row ?? fresh(id))
