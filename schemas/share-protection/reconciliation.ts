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
  loop: ReconciliationLoop.annotateKey({ description: "The loop that found the difference." }),
  kind: Schema.String.check(Schema.isPattern(/^[a-z_]{1,64}$/u)).annotateKey({
    description: "Kind of difference, such as `share_gone` or `snapshot_unknown`.",
  }),
  subject: Schema.String.check(Schema.isPattern(/^[\w-]{1,128}$/u)).annotateKey({
    description: "ID of the resource concerned.",
  }),
  detail: Schema.String.check(Schema.isMaxLength(256)).annotateKey({
    description: "One sentence about the difference.",
  }),
})
export type Drift = typeof Drift.Type

/** Maximum number of differences to keep per loop; the others are only counted. */
export const drift_kept_max = 3

export const ReconciliationStatus = Schema.Struct({
  loops: Schema.Array(ReconciliationLoop).annotateKey({
    description:
      "The loops of each run: `manila_polling` compares shares, `orphan_sweep` finds stuck jobs " +
      "and lost workers, `rebuild_from_repository` compares snapshots.",
  }),
  status: Schema.Literals(["idle", "running"]).annotateKey({
    description: "Whether a run is in progress.",
  }),
  last_run_at: Schema.NullOr(Instant).annotateKey({
    description: "Start of the last run. Null before the first one.",
  }),
  next_run_at: Schema.NullOr(Instant).annotateKey({
    description: "Planned start of the next run. Null before the first one.",
  }),
  drift: Schema.Array(Drift).annotateKey({
    description: `Differences found by the last run, at most ${drift_kept_max} from each loop.`,
  }),
  drift_count: Count.annotateKey({
    description: "Number of all differences found by the last run.",
  }),
}).annotate({
  identifier: "ReconciliationStatus",
  description: "The last and the next comparison of the records with the real resources.",
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
