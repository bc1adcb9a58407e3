/**
 * A backup as the API shows it and takes it, in either shape.
 *
 * Source: document 2 §2 Backup; DECISIONS, document 2, backup create, backup status.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { BackupStatus, EngineSnapshotId } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

const shown = {
  id: BackupId,
  project_id: ProjectId,
  share_id: ShareId,
  policy_id: Schema.NullOr(PolicyId),
  status: BackupStatus,
  /** Null while it is under way, and where there is none. */
  engine_snapshot_id: Schema.NullOr(EngineSnapshotId),
  /** False until it is known. */
  crash_consistent: Schema.Boolean,
  partial: Schema.NullOr(Schema.Boolean),
  bytes: Schema.NullOr(Count),
  stored_bytes: Schema.NullOr(Count),
  files: Schema.NullOr(Count),
  protected_until: Schema.NullOr(Instant),
  /** Of one that is expired: it can be undeleted until then at least; null: nobody knows. */
  recoverable_until: Schema.NullOr(Instant),
  /** Whether it was undeleted: no retention lets it go. */
  kept: Schema.Boolean,
  /** Why it failed. */
  reason: Schema.NullOr(Reason),
  /** Null for a backup that was found in the repository. */
  job_id: Schema.NullOr(JobId),
  taken_at: Schema.NullOr(Instant),
  completed_at: Schema.NullOr(Instant),
  expired_at: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
}

export const BackupA = Schema.Struct({ ...shown, target_id: TargetId }).annotate({
  identifier: "Backup",
})
export type BackupA = typeof BackupA.Type

export const BackupB = Schema.Struct({ ...shown, target_bucket_id: TargetId }).annotate({
  identifier: "BackupInBucket",
})
export type BackupB = typeof BackupB.Type

const wish = { crash_consistent: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) }

/** Without `target_id` the policy says where to. */
export const NewBackupA = Schema.Struct({
  share_id: ShareId,
  target_id: Schema.optionalKey(TargetId),
  policy_id: Schema.optionalKey(Schema.NullOr(PolicyId)),
  ...wish,
})
  .check(
    Schema.makeFilter<{ readonly target_id?: unknown; readonly policy_id?: unknown }>(
      ({ target_id, policy_id }) =>
        target_id !== undefined || typeof policy_id === "string" || "a target_id or a policy_id",
    ),
  )
  .annotate({ identifier: "NewBackup" })

export const NewBackupB = Schema.Struct({
  share_id: ShareId,
  policy_id: PolicyId,
  ...wish,
}).annotate({ identifier: "NewBackupOfPolicy" })
