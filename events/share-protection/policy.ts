/**
 * Events of the protection of a share: of its policy, and of its only concurrent backup.
 * Stream: share-protection.policy.<share id>.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { BackupId, PolicyId, ProjectId } from "#schemas/share-protection/id.ts"
import { policy_changes, policy_fields, SkipReason } from "#schemas/share-protection/policy.ts"

export const PolicyDefined = message("PolicyDefined", policy_fields)
/** Contains only the changed fields. */
export const PolicyUpdated = message("PolicyUpdated", { policy_id: PolicyId, ...policy_changes })
/** Its finished backups remain, without a policy. */
export const PolicyDeleted = message("PolicyDeleted", {
  policy_id: PolicyId,
  project_id: ProjectId,
})
/** `tick` is the scheduled time; null on demand. */
export const ShareBackupStarted = message("ShareBackupStarted", {
  backup_id: BackupId,
  policy_id: Schema.NullOr(PolicyId),
  tick: Schema.NullOr(Instant),
})
export const ShareBackupFinished = message("ShareBackupFinished", { backup_id: BackupId })
export const TickSkipped = message("TickSkipped", {
  policy_id: PolicyId,
  tick: Instant,
  reason: SkipReason,
})

export const PolicyEvent = Schema.Union([
  PolicyDefined,
  PolicyUpdated,
  PolicyDeleted,
  ShareBackupStarted,
  ShareBackupFinished,
  TickSkipped,
]).pipe(Schema.toTaggedUnion("type"))
export type PolicyEvent = typeof PolicyEvent.Type
