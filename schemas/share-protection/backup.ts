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

/** `deleted` is never shown, because the record is removed. */
export const BackupStatus = Schema.Literals([
  "creating",
  "queued",
  "running",
  "available",
  "error",
  "expired",
])
export type BackupStatus = typeof BackupStatus.Type

/** Maximum number of concurrent restores of a backup: their ids are in its snapshot. */
export const backup_restores_max = 100

/** The engine's id of a snapshot; restic's have 64 hex digits. */
export const EngineSnapshotId = Schema.String.check(Schema.isPattern(/^[\w-]{1,64}$/u))

/**
 * Maximum number of unread paths, and of their bytes as JSON; larger lists are reduced to parent
 * folders.
 */
export const unread_max = 100
export const unread_bytes_max = 8 * 1024

/** Paths below the share's root, with a leading slash: `/` is the whole share. */
export const Unread = Schema.Array(Schema.String).check(
  Schema.isMaxLength(unread_max),
  Schema.makeFilter<ReadonlyArray<string>>(
    (paths) =>
      new TextEncoder().encode(JSON.stringify(paths)).length <= unread_bytes_max ||
      `Expected at most ${unread_bytes_max} bytes of JSON`,
  ),
)

/**
 * Facts from the engine. `bytes` is the size of the share's files, `stored_bytes` what the backup
 * added to the repository.
 */
export const snapshot_fields = {
  engine_snapshot_id: EngineSnapshotId,
  /** When the engine started it; retention uses this time. */
  taken_at: Instant,
  /** Whether it was taken from a snapshot of the share rather than from the live share. */
  crash_consistent: Schema.Boolean,
  /** Whether some files could not be read. */
  partial: Schema.Boolean,
  bytes: Count,
  stored_bytes: Count,
  files: Count,
  /** End of the lock on its objects; null if no lock is known. */
  protected_until: Schema.NullOr(Instant),
}

/** Earlier releases did not record unread files. */
export const completed_fields = { ...snapshot_fields, unread: Schema.optionalKey(Unread) }

/** Size of the sample that a restore test restored. */
export const tested_fields = { files: Count, bytes: Count }

const until_available = "Null until the backup is available."

/** The fields of a backup, in the order of its table's columns. */
export const backup_row = {
  id: BackupId,
  project_id: ProjectId,
  share_id: ShareId,
  target_id: TargetId,
  policy_id: Schema.NullOr(PolicyId).annotateKey({
    description: "ID of the policy. Null without one, and after the policy was deleted.",
  }),
  /** The target's domain. */
  domain_id: Schema.NullOr(DomainId),
  job_id: Schema.NullOr(JobId).annotateKey({
    description: "ID of the backup's job. Null if the record was rebuilt from the repository.",
  }),
  status: BackupStatus.annotateKey({
    description:
      "`creating` until the target is enrolled, `queued` until a worker starts, `running`, then " +
      "`available` or `error`. `expired` once retention removed the snapshot.",
  }),
  engine_snapshot_id: Schema.NullOr(EngineSnapshotId).annotateKey({
    description: `ID of the snapshot in the repository. ${until_available}`,
  }),
  crash_consistent: Schema.NullOr(Schema.Boolean).annotateKey({
    description: "Whether a snapshot of the share was read instead of the live share.",
  }),
  partial: Schema.NullOr(Schema.Boolean).annotateKey({
    description: `Whether some files could not be read and are missing. ${until_available}`,
  }),
  bytes: Schema.NullOr(Count).annotateKey({
    description: `Size of the backed-up files in bytes. ${until_available}`,
  }),
  stored_bytes: Schema.NullOr(Count).annotateKey({
    description: `Bytes that the backup added to the repository. ${until_available}`,
  }),
  files: Schema.NullOr(Count).annotateKey({
    description: `Number of backed-up files. ${until_available}`,
  }),
  protected_until: Schema.NullOr(Instant).annotateKey({
    description: "Time until which object lock protects the backup. Null if no lock is known.",
  }),
  recoverable_until: Schema.NullOr(Instant).annotateKey({
    description: "An expired backup can be undeleted at least until this time. Null if unknown.",
  }),
  kept: Schema.Boolean.annotateKey({
    description: "Whether the backup was undeleted. Retention does not expire it again.",
  }),
  reason: Schema.NullOr(Reason).annotateKey({
    description: "Why the backup failed, or why its snapshot is missing. Null otherwise.",
  }),
  taken_at: Schema.NullOr(Instant).annotateKey({
    description: `Time at which the snapshot was taken, which retention uses. ${until_available}`,
  }),
  completed_at: Schema.NullOr(Instant).annotateKey({
    description: `Time at which the backup became available. ${until_available}`,
  }),
  expired_at: Schema.NullOr(Instant).annotateKey({
    description: "Time at which retention expired the backup. Null unless it is expired.",
  }),
  created_at: Instant.annotateKey({ description: "Time of the request." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}

const about = {
  project_id: ProjectId,
  share_id: ShareId,
  target_id: TargetId,
  policy_id: Schema.NullOr(PolicyId),
}

/** `crash_consistent`: true requires a snapshot, false the live share; null prefers a snapshot. */
export const request_fields = {
  ...about,
  job_id: JobId,
  crash_consistent_wanted: Schema.NullOr(Schema.Boolean),
}

export const RequestBackup = message("RequestBackup", request_fields)
/** Its target is enrolled; it waits for a worker. */
export const QueueBackup = message("QueueBackup", {})
export const StartBackup = message("StartBackup", {})
export const CompleteBackup = message("CompleteBackup", completed_fields)
export const FailBackup = message("FailBackup", { reason: Reason })
/** Starts a new attempt after an error. */
export const RetryBackup = message("RetryBackup", {})
/** Retention does not keep it, so its snapshot will be forgotten. Rejected during a restore. */
export const ExpireBackup = message("ExpireBackup", {})
/**
 * Deletes the record. Rejected while the backup is in progress or being restored, and before
 * `protected_until`.
 *
 * `expired` is the caller's view of its state and must be correct: an expired backup no longer
 * counts in a quota, and must not be subtracted twice.
 */
export const DeleteBackup = message("DeleteBackup", { at: Instant, expired: Schema.Boolean })
/** A restore reads it. Rejected unless it is available. */
export const StartBackupRestore = message("StartBackupRestore", { restore_id: RestoreId })
export const FinishBackupRestore = message("FinishBackupRestore", { restore_id: RestoreId })
/** Creates a record for an unknown snapshot in the repository. */
export const AdoptBackup = message("AdoptBackup", { ...about, ...snapshot_fields })
/** The snapshot is missing from the repository, although this service did not remove it. */
export const LoseBackup = message("LoseBackup", { reason: Reason })
/** Undeletes an expired backup: a job checks whether its snapshot is recoverable. */
export const StartBackupUndelete = message("StartBackupUndelete", {})
/** Its snapshot is recovered, and stays until its tenant deletes it. */
export const CompleteBackupUndelete = message("CompleteBackupUndelete", {
  protected_until: snapshot_fields.protected_until,
})
export const FailBackupUndelete = message("FailBackupUndelete", { reason: Reason })
/** A sample of its files was restored and matched. No effect if the backup is gone. */
export const RecordRestoreTest = message("RecordRestoreTest", tested_fields)
/** Some of its files could not be restored or differed. No effect if the backup is gone. */
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

/** A backup whose snapshot a retention job forgets. */
export const Forgotten = Schema.Struct({
  backup_id: BackupId,
  engine_snapshot_id: EngineSnapshotId,
})
export type Forgotten = typeof Forgotten.Type
