/**
 * The published events of share protection.
 *
 * Types, fields and their meanings never change and are never removed. The limits of texts and
 * numbers may change, so none are documented here. Source: document 2 §6 Events; DECISIONS
 * "published events", document 2, event payloads.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import type { PublishedTypes } from "#schemas/published.ts"
import {
  BackupId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
  TargetTemplateId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import { JobType, ResourceType } from "#schemas/share-protection/job.ts"
import { SkipReason } from "#schemas/share-protection/policy.ts"
import { published_fleet } from "#schemas/share-protection/published-fleet.ts"
import { ErrorCode } from "#schemas/share-protection/rejection.ts"
import { RestoreMode } from "#schemas/share-protection/restore.ts"
import { ErrorCategory } from "#schemas/system/rejection.ts"

const described = (description: string) => ({ description })

const reason = Schema.String.annotateKey(described("Reason, as text."))
const occurred_at = Instant.annotateKey(described("Time of the event, RFC 3339 in UTC."))
const changed = Schema.Array(Schema.String).annotateKey(described("Names of the changed fields."))
const worker_id = WorkerId.annotateKey(described("ID of the worker."))

const target_id = TargetId.annotateKey(described("ID of the target."))
const target = { aggregate: "target", subject: "the target" } as const
const target_fields = {
  target_id,
  name: Schema.String.annotateKey(described("Name of the target.")),
  bucket: Schema.String.annotateKey(described("Name of the bucket.")),
}
const enrollment = {
  target_id,
  job_id: JobId.annotateKey(described("ID of the enrollment job.")),
}

const policy = { aggregate: "policy", subject: "the policy" } as const
const policy_fields = {
  policy_id: PolicyId.annotateKey(described("ID of the policy.")),
  share_id: ShareId.annotateKey(described("ID of the share.")),
}

const backup = { aggregate: "backup", subject: "the backup" } as const
const backup_fields = {
  backup_id: BackupId.annotateKey(described("ID of the backup.")),
  share_id: ShareId.annotateKey(described("ID of the share.")),
  target_id: TargetId.annotateKey(described("ID of the backup's target.")),
  policy_id: Schema.optionalKey(PolicyId).annotateKey(
    described(
      "ID of the policy that requested the backup; the policy may have been deleted since.",
    ),
  ),
}
const snapshot = {
  engine_snapshot_id: Schema.String.annotateKey(described("ID of the snapshot in the repository.")),
  taken_at: Instant.annotateKey(described("Time of the snapshot, RFC 3339 in UTC.")),
  crash_consistent: Schema.Boolean.annotateKey(
    described(
      "Whether the backup was read from a snapshot of the share instead of the live share.",
    ),
  ),
  partial: Schema.Boolean.annotateKey(described("Whether some files could not be read.")),
  bytes: Schema.Int.annotateKey(described("Total size of the files in bytes.")),
  stored_bytes: Schema.Int.annotateKey(described("Number of bytes added to the repository.")),
  files: Schema.Int.annotateKey(described("Number of files.")),
  protected_until: Schema.optionalKey(Instant).annotateKey(
    described("Time until which the backup's objects are locked, RFC 3339 in UTC."),
  ),
}

const restore = { aggregate: "restore", subject: "the restore" } as const
const restore_fields = {
  restore_id: RestoreId.annotateKey(described("ID of the restore.")),
  backup_id: BackupId.annotateKey(described("ID of the restored backup.")),
  share_id: ShareId.annotateKey(described("ID of the share that was backed up.")),
  mode: RestoreMode.annotateKey(described("Mode of the restore: into a new share, or in place.")),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey(
    described("True for a dry run; otherwise absent."),
  ),
}

const job = { aggregate: "job", subject: "the job" } as const
const job_fields = {
  job_id: JobId.annotateKey(described("ID of the job.")),
  job_type: JobType.annotateKey(described("Type of the job.")),
  resource_type: ResourceType.annotateKey(described("Type of the resource that the job works on.")),
  resource_id: Schema.String.annotateKey(described("ID of the resource.")),
  target_id: TargetId.annotateKey(described("ID of the target whose repository the job uses.")),
}

export const published = {
  target_created: {
    ...target,
    when: "A target was created; its enrollment was requested.",
    data: Schema.Struct({
      ...target_fields,
      template_id: Schema.optionalKey(TargetTemplateId).annotateKey(
        described("ID of the target's template."),
      ),
      job_id: JobId.annotateKey(described("ID of the enrollment job.")),
    }),
  },
  target_updated: {
    ...target,
    when: "Fields of a target were changed.",
    data: Schema.Struct({ target_id, changed }),
  },
  target_enrolled: {
    ...target,
    when: "A target was enrolled; it now accepts backups.",
    data: Schema.Struct({
      ...enrollment,
      format: Schema.Int.annotateKey(described("Format of the repository.")),
      engine_profile: Schema.String.annotateKey(
        described("Engine profile with which the repository was created."),
      ),
    }),
  },
  target_enrollment_failed: {
    ...target,
    when: "The enrollment of a target failed.",
    data: Schema.Struct({ ...enrollment, reason }),
  },
  target_repo_format_upgraded: {
    ...target,
    when: "The format of a repository was upgraded.",
    data: Schema.Struct({
      target_id,
      project_id: Schema.NullOr(ProjectId).annotateKey(
        described("ID of the target's project; null if projects share the bucket."),
      ),
      from_version: Schema.Int.annotateKey(described("Format before the upgrade.")),
      to_version: Schema.Int.annotateKey(described("Format after the upgrade.")),
      job_id: JobId.annotateKey(described("ID of the upgrade job.")),
      occurred_at,
    }),
  },
  target_deleted: {
    ...target,
    when: "A target was deleted; the contents of its bucket remain.",
    data: Schema.Struct({ target_id }),
  },
  policy_created: {
    ...policy,
    when: "A policy was created for a share.",
    data: Schema.Struct({
      ...policy_fields,
      name: Schema.String.annotateKey(described("Name of the policy.")),
      schedule: Schema.String.annotateKey(described("Schedule of the backups, a cron expression.")),
      timezone: Schema.String.annotateKey(described("Time zone of the schedule.")),
      enabled: Schema.Boolean.annotateKey(described("Whether scheduled backups are enabled.")),
      target_id: Schema.optionalKey(TargetId).annotateKey(
        described("ID of the target of the backups."),
      ),
      target_template_id: Schema.optionalKey(TargetTemplateId).annotateKey(
        described("ID of the template that selects the project's target."),
      ),
    }),
  },
  policy_updated: {
    ...policy,
    when: "Fields of a policy were changed.",
    data: Schema.Struct({ ...policy_fields, changed }),
  },
  policy_deleted: {
    ...policy,
    when: "The policy of a share was deleted; its backups remain.",
    data: Schema.Struct(policy_fields),
  },
  scheduled_backup_skipped: {
    ...policy,
    when: "A scheduled backup was skipped.",
    data: Schema.Struct({
      ...policy_fields,
      tick: Instant.annotateKey(described("Time at which it was due, RFC 3339 in UTC.")),
      reason: SkipReason.annotateKey(described("Reason why it was skipped.")),
    }),
  },
  backup_requested: {
    ...backup,
    when: "A backup was requested.",
    data: Schema.Struct({
      ...backup_fields,
      job_id: JobId.annotateKey(described("ID of the backup job.")),
    }),
  },
  backup_started: {
    ...backup,
    when: "A worker started a backup.",
    data: Schema.Struct(backup_fields),
  },
  backup_completed: {
    ...backup,
    when: "A backup became available.",
    data: Schema.Struct({ ...backup_fields, ...snapshot }),
  },
  backup_failed: {
    ...backup,
    when: "A backup failed; retrying its job may still complete it.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  backup_expired: {
    ...backup,
    when: "A backup expired by its retention; it can no longer be restored.",
    data: Schema.Struct(backup_fields),
  },
  backup_deleted: {
    ...backup,
    when: "The record of a backup was deleted.",
    data: Schema.Struct(backup_fields),
  },
  backup_adopted: {
    ...backup,
    when: "A repository contained a snapshot without a record; the record was created.",
    data: Schema.Struct({ ...backup_fields, ...snapshot }),
  },
  backup_lost: {
    ...backup,
    when:
      "The snapshot of a backup is missing from its repository, although Almanac did not remove " +
      "it.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  backup_undeleted: {
    ...backup,
    when: "An expired backup is available again, and remains until its tenant deletes it.",
    data: Schema.Struct({
      ...backup_fields,
      protected_until: Schema.optionalKey(Instant).annotateKey(
        described("Time until which the backup's objects are locked, RFC 3339 in UTC."),
      ),
    }),
  },
  backup_restore_tested: {
    ...backup,
    when: "A restore test of a backup succeeded: the restored files are unchanged.",
    data: Schema.Struct({
      ...backup_fields,
      files: Schema.Int.annotateKey(described("Number of restored files.")),
      bytes: Schema.Int.annotateKey(described("Size of the restored files in bytes.")),
    }),
  },
  backup_restore_test_failed: {
    ...backup,
    when: "A restore test of a backup failed: files could not be restored, or differ.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  restore_requested: {
    ...restore,
    when: "A restore was requested.",
    data: Schema.Struct({
      ...restore_fields,
      job_id: JobId.annotateKey(described("ID of the restore job.")),
    }),
  },
  restore_started: {
    ...restore,
    when: "A worker started a restore.",
    data: Schema.Struct(restore_fields),
  },
  restore_completed: {
    ...restore,
    when: "A restore finished; the backup's files were written.",
    data: Schema.Struct({
      ...restore_fields,
      new_share_id: Schema.optionalKey(ShareId).annotateKey(
        described("ID of the share that was created for the files."),
      ),
      files: Schema.Int.annotateKey(described("Number of restored files.")),
      bytes: Schema.Int.annotateKey(described("Size of the restored files in bytes.")),
    }),
  },
  restore_failed: {
    ...restore,
    when: "A restore failed; retrying its job may still complete it.",
    data: Schema.Struct({ ...restore_fields, reason }),
  },
  job_queued: {
    ...job,
    when: "A job was queued; it waits for a worker.",
    data: Schema.Struct(job_fields),
  },
  job_started: {
    ...job,
    when: "A worker accepted a job.",
    data: Schema.Struct({ ...job_fields, worker_id }),
  },
  job_completed: { ...job, when: "A job succeeded.", data: Schema.Struct(job_fields) },
  job_failed: {
    ...job,
    when: "A job failed.",
    data: Schema.Struct({
      ...job_fields,
      code: ErrorCode.annotateKey(described("Code of the error.")),
      detail: Schema.String.annotateKey(described("Detail of the error, as text.")),
      category: ErrorCategory.annotateKey(described("Category of the error: who can resolve it.")),
    }),
  },
  job_cancelled: {
    ...job,
    when: "A job was cancelled; its engine may run for a moment longer.",
    data: Schema.Struct(job_fields),
  },
  job_retried: {
    ...job,
    when: "A failed job was queued again.",
    data: Schema.Struct({
      ...job_fields,
      attempt: Schema.Int.annotateKey(described("Number of the attempt, from 2.")),
      automatic: Schema.Boolean.annotateKey(described("Whether the retry was automatic.")),
    }),
  },
  ...published_fleet,
} as const satisfies PublishedTypes
