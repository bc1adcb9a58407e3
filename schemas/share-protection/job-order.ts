/**
 * A job's order: all that a worker is told of a job. It names secrets by their hrefs only; the
 * worker fetches them itself, by the tenant's trust.
 *
 * Source: document 2 §1 Secrets; DECISIONS, document 2, workers.
 */
import { Schema } from "effect"
import { EngineSnapshotId, Unread } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import { QueueJob } from "#schemas/share-protection/job.ts"
import { DefinePolicy } from "#schemas/share-protection/policy.ts"
import { PlanHash, RestoreMode, SubPath } from "#schemas/share-protection/restore.ts"
import { CreateTarget, VaultSecretMap } from "#schemas/share-protection/target.ts"
import { Count, SecretRef, TrustId } from "#schemas/share-protection/text.ts"

/** Bytes of an order as JSON. The bounds of its fields keep it below; they may not grow past it. */
export const job_order_bytes_max = 64 * 1024

const { endpoint, bucket, region, addressing_mode, ca_cert_ref } = CreateTarget.fields

/** The target's bucket, and how to get into it. */
const OrderedTarget = Schema.Struct({
  endpoint,
  bucket,
  region,
  addressing_mode,
  ca_cert_ref,
  trust_id: TrustId,
  vault_secret_map: VaultSecretMap,
})
export type OrderedTarget = typeof OrderedTarget.Type

const about = {
  job_id: JobId,
  /** From 1. */
  attempt: Count,
  /** The job's place on its worker and in the repository's lease. */
  worker_id: WorkerId,
  fence: Count,
  target_id: TargetId,
  target: OrderedTarget,
}

/** What is done in a repository that is there. */
const enrolled = { ...about, repository_password_ref: SecretRef }

/** What a target's own jobs have for a resource. */
const of_target = { resource_id: TargetId, project_id: QueueJob.fields.project_id }

const { include_patterns, exclude_patterns } = DefinePolicy.fields

export const BackupOrder = Schema.Struct({
  job_type: Schema.tag("backup"),
  ...enrolled,
  project_id: ProjectId,
  resource_id: BackupId,
  backup_id: BackupId,
  share_id: ShareId,
  policy_id: Schema.NullOr(PolicyId),
  crash_consistent_wanted: Schema.NullOr(Schema.Boolean),
  /** Empty: everything. */
  include_patterns,
  exclude_patterns,
})

export const RestoreOrder = Schema.Struct({
  job_type: Schema.tag("restore"),
  ...enrolled,
  project_id: ProjectId,
  resource_id: RestoreId,
  backup_id: BackupId,
  /** The share that was backed up. */
  share_id: ShareId,
  engine_snapshot_id: EngineSnapshotId,
  mode: RestoreMode,
  /** Null or `/`: all of it. */
  sub_path: Schema.NullOr(SubPath),
  dry_run: Schema.Boolean,
  plan_hash: Schema.NullOr(PlanHash),
  /** What the backup could not read: nothing of it is deleted. */
  unread: Schema.optionalKey(Unread),
})

/** Passwords of former targets that are tried: more than one is there only by other failures. */
export const former_passwords_max = 4

/** The password has yet to be made, or to be found where an earlier attempt left it. */
export const EnrollmentOrder = Schema.Struct({
  job_type: Schema.tag("target_enroll"),
  ...about,
  ...of_target,
  /** Of deleted targets of the project that had the bucket: one may open what they left there. */
  former_password_refs: Schema.optionalKey(
    Schema.Array(SecretRef).check(Schema.isMaxLength(former_passwords_max)),
  ),
  /** Another target has the bucket: this one is refused, once its own keys have proven good. */
  is_taken: Schema.optionalKey(Schema.Boolean),
})

export const RetentionOrder = Schema.Struct({
  job_type: Schema.tag("retention"),
  ...enrolled,
  ...of_target,
  forget: QueueJob.fields.forget,
})

export const MaintenanceOrder = Schema.Struct({
  job_type: Schema.tag("maintenance"),
  ...enrolled,
  ...of_target,
})

export const FormatUpgradeOrder = Schema.Struct({
  job_type: Schema.tag("repo_format_upgrade"),
  ...enrolled,
  ...of_target,
})

/** One backup whose snapshot is brought back, or tried. */
const of_backup = {
  ...enrolled,
  project_id: ProjectId,
  resource_id: BackupId,
  backup_id: BackupId,
  share_id: ShareId,
  engine_snapshot_id: EngineSnapshotId,
}

export const UndeleteOrder = Schema.Struct({ job_type: Schema.tag("undelete"), ...of_backup })

export const RestoreTestOrder = Schema.Struct({
  job_type: Schema.tag("restore_test"),
  ...of_backup,
})

export const JobOrder = Schema.Union([
  BackupOrder,
  RestoreOrder,
  EnrollmentOrder,
  RetentionOrder,
  MaintenanceOrder,
  FormatUpgradeOrder,
  UndeleteOrder,
  RestoreTestOrder,
]).pipe(Schema.toTaggedUnion("job_type"))
export type JobOrder = typeof JobOrder.Type
