/**
 * The fleet: rules across the workers of a pool. The worker project is the default pool.
 *
 * Source: document 2 §8 conductor.worker_boot_*; DECISIONS, document 2, worker, rollouts.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { RolloutId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** Maximum number of boot failures to remember. */
export const boot_failures_kept = 100

/**
 * Permits the boot of a worker: rejected within the cooldown after the last boot, and after too
 * many failures within the window. Replacements of a rollout skip the cooldown.
 */
export const AllowBoot = message("AllowBoot", {
  worker_id: WorkerId,
  at: Instant,
  cooldown_seconds: Count,
  max_failures: Count,
  failure_window_seconds: Count,
  replacement: Schema.Boolean,
})
export const RecordBootFailure = message("RecordBootFailure", {
  worker_id: WorkerId,
  at: Instant,
  reason: Reason,
})
/** Rejected while another rollout runs. */
export const AllowRollout = message("AllowRollout", { rollout_id: RolloutId })
export const EndRollout = message("EndRollout", { rollout_id: RolloutId })

export const FleetCommand = Schema.Union([AllowBoot, RecordBootFailure, AllowRollout, EndRollout])
export type FleetCommand = typeof FleetCommand.Type
