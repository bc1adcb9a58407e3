/** Events of a target. Stream: share-protection.target.<id>. */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import {
  Capabilities,
  enrollment_result,
  RepositoryFormat,
  target_changes,
  target_fields,
  UsageStats,
} from "#schemas/share-protection/target.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export const TargetCreated = message("TargetCreated", { ...target_fields, job_id: JobId })
/** Contains only the changed fields. */
export const TargetUpdated = message("TargetUpdated", target_changes)
/** From here backups and restores may use it. */
export const TargetEnrolled = message("TargetEnrolled", { job_id: JobId, ...enrollment_result })
export const TargetEnrollmentFailed = message("TargetEnrollmentFailed", {
  job_id: JobId,
  reason: Reason,
})
export const TargetEnrollmentRestarted = message("TargetEnrollmentRestarted", { job_id: JobId })
/** Outside an enrollment. `reason` is null when all checks passed. */
export const TargetPreflighted = message("TargetPreflighted", {
  capabilities: Schema.NullOr(Capabilities),
  reason: Schema.NullOr(Reason),
  at: Instant,
})
export const TargetPolicyRegistered = message("TargetPolicyRegistered", {})
export const TargetPolicyDeregistered = message("TargetPolicyDeregistered", {})
export const TargetBackupRegistered = message("TargetBackupRegistered", {})
/** `at` is the time at which a tenant deleted an available backup; else absent. */
export const TargetBackupsDeregistered = message("TargetBackupsDeregistered", {
  count: Count,
  at: Schema.optionalKey(Instant),
})
/** From here no backup or restore begins on it. */
export const TargetFormatUpgradeStarted = message("TargetFormatUpgradeStarted", {
  job_id: JobId,
  from_format: RepositoryFormat,
})
export const TargetFormatUpgraded = message("TargetFormatUpgraded", {
  job_id: JobId,
  from_format: RepositoryFormat,
  to_format: RepositoryFormat,
})
export const TargetFormatUpgradeFailed = message("TargetFormatUpgradeFailed", {
  job_id: JobId,
  reason: Reason,
})
export const TargetUsageMeasured = message("TargetUsageMeasured", { usage_stats: UsageStats })
/** Everything that its repository needs is locked at least until then. */
export const TargetLocksExtended = message("TargetLocksExtended", { protected_until: Instant })
/** The record is deleted; the contents of the bucket remain. */
export const TargetDeleted = message("TargetDeleted", {})

export const TargetEvent = Schema.Union([
  TargetCreated,
  TargetUpdated,
  TargetEnrolled,
  TargetEnrollmentFailed,
  TargetEnrollmentRestarted,
  TargetPreflighted,
  TargetPolicyRegistered,
  TargetPolicyDeregistered,
  TargetBackupRegistered,
  TargetBackupsDeregistered,
  TargetFormatUpgradeStarted,
  TargetFormatUpgraded,
  TargetFormatUpgradeFailed,
  TargetUsageMeasured,
  TargetLocksExtended,
  TargetDeleted,
]).pipe(Schema.toTaggedUnion("type"))
export type TargetEvent = typeof TargetEvent.Type
