/**
 * Reconciliation: compares the records with the real resources.
 *
 * Source: document 2 §2 Reconciliation status, §4; DECISIONS, document 2, other admin answers.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { Count } from "#schemas/share-protection/text.ts"

export const reconciliation_loops = [
  "manila_polling",
  "orphan_sweep",
  "rebuild_from_repository",
] as const

export const ReconciliationLoop = Schema.Literals(reconciliation_loops)
export type ReconciliationLoop = typeof ReconciliationLoop.Type

/** A difference found by a loop. `kind` is a keyword such as share_gone or snapshot_unknown. */
export const Drift = Schema.Struct({
  loop: ReconciliationLoop,
  kind: Schema.String.check(Schema.isPattern(/^[a-z_]{1,64}$/u)),
  subject: Schema.String.check(Schema.isPattern(/^[\w-]{1,128}$/u)),
  detail: Schema.String.check(Schema.isMaxLength(256)),
})
export type Drift = typeof Drift.Type

/** Maximum number of differences to keep per loop; the others are only counted. */
export const drift_kept_max = 3

export const ReconciliationStatus = Schema.Struct({
  loops: Schema.Array(ReconciliationLoop),
  status: Schema.Literals(["idle", "running"]),
  last_run_at: Schema.NullOr(Instant),
  next_run_at: Schema.NullOr(Instant),
  drift: Schema.Array(Drift),
  drift_count: Count,
})
export type ReconciliationStatus = typeof ReconciliationStatus.Type

/** An operator requests a run now. No effect while one is requested or running. */
export const TriggerReconciliation = message("TriggerReconciliation", {})
export const StartReconciliation = message("StartReconciliation", { at: Instant })
/** All loops are finished. */
export const FinishReconciliation = message("FinishReconciliation", {
  drift: Schema.Array(Drift).check(
    Schema.isMaxLength(drift_kept_max * reconciliation_loops.length),
  ),
  drift_count: Count,
})

export const ReconciliationCommand = Schema.Union([
  TriggerReconciliation,
  StartReconciliation,
  FinishReconciliation,
])
export type ReconciliationCommand = typeof ReconciliationCommand.Type
