/** Sample events of a target, and the histories that lead to each of its states. */
import {
  TargetBackupRegistered,
  TargetBackupsDeregistered,
  TargetCreated,
  TargetDeleted,
  TargetEnrolled,
  TargetEnrollmentFailed,
  TargetEnrollmentRestarted,
  type TargetEvent,
  TargetFormatUpgraded,
  TargetFormatUpgradeFailed,
  TargetFormatUpgradeStarted,
  TargetLocksExtended,
  TargetPolicyDeregistered,
  TargetPolicyRegistered,
  TargetPreflighted,
  TargetUpdated,
  TargetUsageMeasured,
} from "#events/share-protection/target.ts"
import {
  capabilities,
  enrolled,
  job_id,
  jobId,
  later,
  other_job_id,
  target,
  usage_stats,
} from "./samples.ts"

export const upgrade_job_id = jobId(3)
export const reason = "object_lock: the bucket has no default lock"

export const created = TargetCreated.make(target)
export const completed = TargetEnrolled.make({ job_id, ...enrolled })
export const failed = TargetEnrollmentFailed.make({ job_id, reason })
export const restarted = TargetEnrollmentRestarted.make({ job_id: other_job_id })
export const upgrade_started = TargetFormatUpgradeStarted.make({
  job_id: upgrade_job_id,
  from_format: 2,
})
export const upgraded = TargetFormatUpgraded.make({
  job_id: upgrade_job_id,
  from_format: 2,
  to_format: 3,
})
export const upgrade_failed = TargetFormatUpgradeFailed.make({
  job_id: upgrade_job_id,
  reason: "cancelled",
})
export const policy_registered = TargetPolicyRegistered.make({})
export const policy_deregistered = TargetPolicyDeregistered.make({})
export const backup_registered = TargetBackupRegistered.make({})
export const deregistered = (count: number, when: { readonly at?: string } = {}) =>
  TargetBackupsDeregistered.make({ count, ...when })
export const renamed = TargetUpdated.make({ name: "Another" })
export const moved = TargetUpdated.make({ bucket: "another-bucket" })
export const preflighted = TargetPreflighted.make({ capabilities, reason: null, at: later })
export const measured = TargetUsageMeasured.make({ usage_stats })
export const extended = TargetLocksExtended.make({ protected_until: later })
export const deleted = TargetDeleted.make({})

const available = [created, completed]

export const states = {
  absent: [],
  pending: [created],
  "pending again": [created, failed, restarted],
  available,
  error: [created, failed],
  upgrading: [...available, upgrade_started],
  upgraded: [...available, upgrade_started, upgraded],
  "not upgraded": [...available, upgrade_started, upgrade_failed],
  "referenced by a policy": [...available, policy_registered],
  "holding two backups": [...available, backup_registered, backup_registered],
  "holding a locked backup": [...available, extended, backup_registered],
  "holding a backup, upgrading": [...available, backup_registered, upgrade_started],
  deleted: [...available, deleted],
} satisfies Record<string, ReadonlyArray<TargetEvent>>
