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
import { ErrorCategory, ErrorCode } from "#schemas/share-protection/rejection.ts"
import { RestoreMode } from "#schemas/share-protection/restore.ts"

const described = (description: string) => ({ description })

const reason = Schema.String.annotateKey(described("Why, in words."))
const occurred_at = Instant.annotateKey(described("When, RFC 3339 in UTC."))
const changed = Schema.Array(Schema.String).annotateKey(
  described("Names of the fields that have another value from here on."),
)
const worker_id = WorkerId.annotateKey(described("The worker's id."))

const target_id = TargetId.annotateKey(described("The target's id."))
const target = { aggregate: "target", subject: "the target" } as const
const target_fields = {
  target_id,
  name: Schema.String.annotateKey(described("The target's name.")),
  bucket: Schema.String.annotateKey(described("The bucket's name.")),
}
const enrollment = {
  target_id,
  job_id: JobId.annotateKey(described("The job of its enrollment.")),
}

const policy = { aggregate: "policy", subject: "the policy" } as const
const policy_fields = {
  policy_id: PolicyId.annotateKey(described("The policy's id.")),
  share_id: ShareId.annotateKey(described("The share that it is of.")),
}

const backup = { aggregate: "backup", subject: "the backup" } as const
const backup_fields = {
  backup_id: BackupId.annotateKey(described("The backup's id.")),
  share_id: ShareId.annotateKey(described("The share that it is of.")),
  target_id: TargetId.annotateKey(described("The target that it is in.")),
  policy_id: Schema.optionalKey(PolicyId).annotateKey(
    described("The policy that asked for it, which may be deleted since."),
  ),
}
const snapshot = {
  engine_snapshot_id: Schema.String.annotateKey(described("The engine's id of the snapshot.")),
  taken_at: Instant.annotateKey(described("When it was taken, RFC 3339 in UTC.")),
  crash_consistent: Schema.Boolean.annotateKey(
    described("Whether it was taken from a snapshot of the share, not from the live share."),
  ),
  partial: Schema.Boolean.annotateKey(described("Whether some files could not be read.")),
  bytes: Schema.Int.annotateKey(described("Bytes of the files.")),
  stored_bytes: Schema.Int.annotateKey(described("Bytes that it added to the repository.")),
  files: Schema.Int.annotateKey(described("How many files.")),
  protected_until: Schema.optionalKey(Instant).annotateKey(
    described("Until when its objects are locked, RFC 3339 in UTC."),
  ),
}

const restore = { aggregate: "restore", subject: "the restore" } as const
const restore_fields = {
  restore_id: RestoreId.annotateKey(described("The restore's id.")),
  backup_id: BackupId.annotateKey(described("The backup that is restored.")),
  share_id: ShareId.annotateKey(described("The share that was backed up.")),
  mode: RestoreMode.annotateKey(described("Into a new share, or in place.")),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey(
    described("True where it only finds out what it would do; else absent."),
  ),
}

const job = { aggregate: "job", subject: "the job" } as const
const job_fields = {
  job_id: JobId.annotateKey(described("The job's id.")),
  job_type: JobType.annotateKey(described("What it does.")),
  resource_type: ResourceType.annotateKey(described("What it is about.")),
  resource_id: Schema.String.annotateKey(described("Its id.")),
  target_id: TargetId.annotateKey(described("The target whose repository it uses.")),
}

export const published = {
  target_created: {
    ...target,
    when: "A bucket was registered, and is to be enrolled.",
    data: Schema.Struct({
      ...target_fields,
      template_id: Schema.optionalKey(TargetTemplateId).annotateKey(
        described("The template that it is registered against."),
      ),
      job_id: JobId.annotateKey(described("The job that enrolls it.")),
    }),
  },
  target_updated: {
    ...target,
    when: "Fields of a target were changed.",
    data: Schema.Struct({ target_id, changed }),
  },
  target_enrolled: {
    ...target,
    when: "A target's repository is there: it takes backups from here on.",
    data: Schema.Struct({
      ...enrollment,
      format: Schema.Int.annotateKey(described("The repository's format.")),
      engine_profile: Schema.String.annotateKey(described("The engine's profile that made it.")),
    }),
  },
  target_enrollment_failed: {
    ...target,
    when: "A target could not be enrolled.",
    data: Schema.Struct({ ...enrollment, reason }),
  },
  target_repo_format_upgraded: {
    ...target,
    when: "A repository has a newer format.",
    data: Schema.Struct({
      target_id,
      project_id: Schema.NullOr(ProjectId).annotateKey(
        described("Whose target it is; null where projects share the bucket."),
      ),
      from_version: Schema.Int.annotateKey(described("The format that it had.")),
      to_version: Schema.Int.annotateKey(described("The format that it has.")),
      job_id: JobId.annotateKey(described("The job that upgraded it.")),
      occurred_at,
    }),
  },
  target_deleted: {
    ...target,
    when: "A target's record is gone; what is in its bucket stays.",
    data: Schema.Struct({ target_id }),
  },
  policy_created: {
    ...policy,
    when: "A share has a policy.",
    data: Schema.Struct({
      ...policy_fields,
      name: Schema.String.annotateKey(described("The policy's name.")),
      schedule: Schema.String.annotateKey(described("When backups are due, a cron expression.")),
      timezone: Schema.String.annotateKey(described("The schedule's time zone.")),
      enabled: Schema.Boolean.annotateKey(described("Whether scheduled backups take place.")),
      target_id: Schema.optionalKey(TargetId).annotateKey(described("Where backups go.")),
      target_template_id: Schema.optionalKey(TargetTemplateId).annotateKey(
        described("The template below which backups go to the project's target."),
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
    when: "A share has no policy any more; its backups stay.",
    data: Schema.Struct(policy_fields),
  },
  scheduled_backup_skipped: {
    ...policy,
    when: "A scheduled backup did not take place.",
    data: Schema.Struct({
      ...policy_fields,
      tick: Instant.annotateKey(described("When it was due, RFC 3339 in UTC.")),
      reason: SkipReason.annotateKey(described("Why it did not.")),
    }),
  },
  backup_requested: {
    ...backup,
    when: "A backup is to be made.",
    data: Schema.Struct({
      ...backup_fields,
      job_id: JobId.annotateKey(described("The job that makes it.")),
    }),
  },
  backup_started: {
    ...backup,
    when: "A worker began to make a backup.",
    data: Schema.Struct(backup_fields),
  },
  backup_completed: {
    ...backup,
    when: "A backup is available.",
    data: Schema.Struct({ ...backup_fields, ...snapshot }),
  },
  backup_failed: {
    ...backup,
    when: "A backup could not be made; a retry of its job may still make it.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  backup_expired: {
    ...backup,
    when: "The retention let a backup go: it cannot be restored any more.",
    data: Schema.Struct(backup_fields),
  },
  backup_deleted: {
    ...backup,
    when: "A backup's record is gone.",
    data: Schema.Struct(backup_fields),
  },
  backup_adopted: {
    ...backup,
    when: "A repository contained a snapshot without a record; the record was created.",
    data: Schema.Struct({ ...backup_fields, ...snapshot }),
  },
  backup_lost: {
    ...backup,
    when: "A backup's snapshot is not in its repository, though nothing here removed it.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  backup_undeleted: {
    ...backup,
    when: "A backup that had expired is available again, and stays until its tenant deletes it.",
    data: Schema.Struct({
      ...backup_fields,
      protected_until: Schema.optionalKey(Instant).annotateKey(
        described("Until when its objects are locked, RFC 3339 in UTC."),
      ),
    }),
  },
  backup_restore_tested: {
    ...backup,
    when: "Files of a backup were restored for a test and are unchanged.",
    data: Schema.Struct({
      ...backup_fields,
      files: Schema.Int.annotateKey(described("How many files were restored.")),
      bytes: Schema.Int.annotateKey(described("Their bytes.")),
    }),
  },
  backup_restore_test_failed: {
    ...backup,
    when: "Files of a backup could not be restored for a test, or have changed.",
    data: Schema.Struct({ ...backup_fields, reason }),
  },
  restore_requested: {
    ...restore,
    when: "A backup is to be restored.",
    data: Schema.Struct({
      ...restore_fields,
      job_id: JobId.annotateKey(described("The job that restores it.")),
    }),
  },
  restore_started: {
    ...restore,
    when: "A worker began to restore a backup.",
    data: Schema.Struct(restore_fields),
  },
  restore_completed: {
    ...restore,
    when: "A backup's files are back.",
    data: Schema.Struct({
      ...restore_fields,
      new_share_id: Schema.optionalKey(ShareId).annotateKey(
        described("The share that was made for them."),
      ),
      files: Schema.Int.annotateKey(described("How many files.")),
      bytes: Schema.Int.annotateKey(described("Their bytes.")),
    }),
  },
  restore_failed: {
    ...restore,
    when: "A restore failed; a retry of its job may still end well.",
    data: Schema.Struct({ ...restore_fields, reason }),
  },
  job_queued: {
    ...job,
    when: "A job waits for a worker.",
    data: Schema.Struct(job_fields),
  },
  job_started: {
    ...job,
    when: "A worker took a job.",
    data: Schema.Struct({ ...job_fields, worker_id }),
  },
  job_completed: { ...job, when: "A job ended well.", data: Schema.Struct(job_fields) },
  job_failed: {
    ...job,
    when: "A job ended in error.",
    data: Schema.Struct({
      ...job_fields,
      code: ErrorCode.annotateKey(described("The error's code.")),
      detail: Schema.String.annotateKey(described("The error in words.")),
      category: ErrorCategory.annotateKey(described("Who can do something about it.")),
    }),
  },
  job_cancelled: {
    ...job,
    when: "A caller cancelled a job; its engine may run for a moment longer.",
    data: Schema.Struct(job_fields),
  },
  job_retried: {
    ...job,
    when: "A job that had ended in error waits for a worker again.",
    data: Schema.Struct({
      ...job_fields,
      attempt: Schema.Int.annotateKey(described("Which attempt begins, from 2.")),
      automatic: Schema.Boolean.annotateKey(described("Whether nobody asked for it.")),
    }),
  },
  ...published_fleet,
} as const satisfies PublishedTypes
