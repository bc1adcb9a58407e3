/**
 * A backup: one snapshot of a share in a target's repository.
 *
 * Source: document 2 §2 Backup, §3 Backup; DECISIONS, document 2, backup status, DELETE backup.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import {
  BackupId,
  DomainId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

/** `deleted` is never shown: its record is gone. */
export const BackupStatus = Schema.Literals([
  "creating",
  "queued",
  "running",
  "available",
  "error",
  "expired",
])
export type BackupStatus = typeof BackupStatus.Type

/** Restores of one backup at the same time: their ids are in its snapshot. */
export const backup_restores_max = 100

/** The engine's id of a snapshot: restic's are 64 hex digits. */
export const EngineSnapshotId = Schema.String.check(Schema.isPattern(/^[\w-]{1,64}$/))

/** Paths that a backup could not read, and their bytes as JSON: beyond them, their folders. */
export const unread_max = 100
export const unread_bytes_max = 8 * 1024

/** Below the share's root, with a slash before each: `/` is all of it. */
export const Unread = Schema.Array(Schema.String).check(
  Schema.isMaxLength(unread_max),
  Schema.makeFilter<ReadonlyArray<string>>(
    (paths) =>
      new TextEncoder().encode(JSON.stringify(paths)).length <= unread_bytes_max ||
      `at most ${unread_bytes_max} bytes`,
  ),
)

/** What the engine made. Bytes are those of the share, `stored_bytes` what they added. */
export const snapshot_fields = {
  engine_snapshot_id: EngineSnapshotId,
  /** When the engine began it: what retention goes by. */
  taken_at: Instant,
  /** Whether it was taken from a snapshot of the share, and not from the live share. */
  crash_consistent: Schema.Boolean,
  /** Whether the engine could not read everything. */
  partial: Schema.Boolean,
  bytes: Count,
  stored_bytes: Count,
  files: Count,
  /** Until when its objects are locked; null when nothing is known of a lock. */
  protected_until: Schema.NullOr(Instant),
}

/** Earlier releases did not record which files could not be read. */
export const completed_fields = { ...snapshot_fields, unread: Schema.optionalKey(Unread) }

/** How much of a backup was restored to prove it. */
export const tested_fields = { files: Count, bytes: Count }

/** The fields of a backup, in the order of its table's columns. */
export const backup_row = {
  id: BackupId,
  project_id: ProjectId,
  share_id: ShareId,
  target_id: TargetId,
  /** Null without a policy, and since its policy was deleted. */
  policy_id: Schema.NullOr(PolicyId),
  /** The target's. */
  domain_id: Schema.NullOr(DomainId),
  /** Null for one that was found in the repository. */
  job_id: Schema.NullOr(JobId),
  status: BackupStatus,
  /** These are null until it is available. */
  engine_snapshot_id: Schema.NullOr(EngineSnapshotId),
  crash_consistent: Schema.NullOr(Schema.Boolean),
  partial: Schema.NullOr(Schema.Boolean),
  bytes: Schema.NullOr(Count),
  stored_bytes: Schema.NullOr(Count),
  files: Schema.NullOr(Count),
  protected_until: Schema.NullOr(Instant),
  /** Of one that is expired: it can be undeleted until then at least; null if unknown. */
  recoverable_until: Schema.NullOr(Instant),
  /** Whether it was undeleted: no retention lets it go. */
  kept: Schema.Boolean,
  /** Why it failed. */
  reason: Schema.NullOr(Reason),
  /** When its snapshot was taken. */
  taken_at: Schema.NullOr(Instant),
  completed_at: Schema.NullOr(Instant),
  expired_at: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
}

const about = {
  project_id: ProjectId,
  share_id: ShareId,
  target_id: TargetId,
  policy_id: Schema.NullOr(PolicyId),
}

/** `crash_consistent` is a wish: whether to insist on a snapshot, null for where one can be had. */
export const request_fields = {
  ...about,
  job_id: JobId,
  crash_consistent_wanted: Schema.NullOr(Schema.Boolean),
}

export const RequestBackup = message("RequestBackup", request_fields)
/** Its target is enrolled: it waits for a worker. */
export const QueueBackup = message("QueueBackup", {})
export const StartBackup = message("StartBackup", {})
export const CompleteBackup = message("CompleteBackup", completed_fields)
export const FailBackup = message("FailBackup", { reason: Reason })
/** A new attempt after an error. */
export const RetryBackup = message("RetryBackup", {})
/** The retention policy lets it go: its snapshot is forgotten. Refused while it is restored. */
export const ExpireBackup = message("ExpireBackup", {})
/**
 * Its record goes. Refused under way, while it is restored, and before `protected_until`.
 *
 * `expired` is what the asker takes it for: it is refused when it is otherwise, since what expired
 * counts in no quota any more, and must not be taken off it twice.
 */
export const DeleteBackup = message("DeleteBackup", { at: Instant, expired: Schema.Boolean })
/** A restore reads it. Refused unless it is available. */
export const StartBackupRestore = message("StartBackupRestore", { restore_id: RestoreId })
export const FinishBackupRestore = message("FinishBackupRestore", { restore_id: RestoreId })
/** A snapshot was found in the repository that no record tells of. */
export const AdoptBackup = message("AdoptBackup", { ...about, ...snapshot_fields })
/** The snapshot is not in the repository any more, though nothing here removed it. */
export const LoseBackup = message("LoseBackup", { reason: Reason })
/** An expired one is wanted back: a job looks whether its snapshot can be had. */
export const StartBackupUndelete = message("StartBackupUndelete", {})
/** Its snapshot is back, and stays until its tenant deletes it. */
export const CompleteBackupUndelete = message("CompleteBackupUndelete", {
  protected_until: snapshot_fields.protected_until,
})
export const FailBackupUndelete = message("FailBackupUndelete", { reason: Reason })
/** Some of its files were restored, and were as they had been. Of one that is gone: nothing. */
export const RecordRestoreTest = message("RecordRestoreTest", tested_fields)
/** Files of it could not be had, or were not as they had been. Of one that is gone: nothing. */
export const FailRestoreTest = message("FailRestoreTest", { reason: Reason })

export const BackupCommand = Schema.Union([
  RequestBackup,
  QueueBackup,
  StartBackup,
  CompleteBackup,
  FailBackup,
  RetryBackup,
  ExpireBackup,
  DeleteBackup,
  StartBackupRestore,
  FinishBackupRestore,
  AdoptBackup,
  LoseBackup,
  StartBackupUndelete,
  CompleteBackupUndelete,
  FailBackupUndelete,
  RecordRestoreTest,
  FailRestoreTest,
])
export type BackupCommand = typeof BackupCommand.Type

/** What a retention job forgets. */
export const Forgotten = Schema.Struct({
  backup_id: BackupId,
  engine_snapshot_id: EngineSnapshotId,
})
export type Forgotten = typeof Forgotten.Type
