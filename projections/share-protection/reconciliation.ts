/** Reconciliation as operators see it. Source: document 2 §2 Reconciliation status. */
import { Effect } from "effect"
import type { Kysely } from "kysely"
import { ReconciliationEvent } from "#events/share-protection/reconciliation.ts"
import { projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/share-protection/table.ts"
import type { Drift, ReconciliationStatus } from "#schemas/share-protection/reconciliation.ts"

interface ReconciliationRow {
  readonly id: string
  readonly status: ReconciliationStatus["status"]
  /** When the last run began, RFC 3339. */
  readonly last_run_at: string | null
  /** What the last finished run found. */
  readonly drift: ReadonlyArray<Drift>
  readonly drift_count: number
}

export interface ReconciliationTables {
  readonly share_protection_reconciliation: Stored<ReconciliationRow>
}

const reconciliations = table<ReconciliationRow>({
  name: "share_protection_reconciliation",
  columns: {
    id: "text",
    status: "text",
    last_run_at: "text?",
    drift: "json",
    drift_count: "integer",
  },
})

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
      // It is idle until the run begins that was asked for.
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
