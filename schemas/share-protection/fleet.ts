/**
 * The fleet: what goes beyond one worker of a pool. One pool by default, the worker project.
 *
 * Source: document 2 §8 conductor.worker_boot_*; DECISIONS, document 2, worker, rollouts.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { RolloutId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** Boot failures that are remembered. */
export const boot_failures_kept = 100

/**
 * A worker's boot is allowed: not within the cooldown after the last one, and not after so many
 * failures within the window. A rollout's replacement does not wait for the cooldown.
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
/** Refused while another rollout runs. */
export const AllowRollout = message("AllowRollout", { rollout_id: RolloutId })
export const EndRollout = message("EndRollout", { rollout_id: RolloutId })

export const FleetCommand = Schema.Union([AllowBoot, RecordBootFailure, AllowRollout, EndRollout])
export type FleetCommand = typeof FleetCommand.Type
