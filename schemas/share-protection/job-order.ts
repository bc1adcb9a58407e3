/**
 * A job's order: everything that a worker needs to know about a job. It contains only hrefs of
 * secrets; the worker reads them itself by the tenant's trust.
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

/** Maximum size of an order in bytes of JSON. The limits of its fields must not exceed it. */
export const job_order_bytes_max = 64 * 1024

const { endpoint, bucket, region, addressing_mode, ca_cert_ref } = CreateTarget.fields

/** The target's bucket and the access to it. */
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
  /** The job's hold on its worker and the repository's lease. */
  worker_id: WorkerId,
  fence: Count,
  target_id: TargetId,
  target: OrderedTarget,
}

/** The fields of jobs in an existing repository. */
const enrolled = { ...about, repository_password_ref: SecretRef }

/** The resource of a target's own jobs. */
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
  /** The backed-up share. */
  share_id: ShareId,
  engine_snapshot_id: EngineSnapshotId,
  mode: RestoreMode,
  /** Null or `/`: all of it. */
  sub_path: Schema.NullOr(SubPath),
  dry_run: Schema.Boolean,
  plan_hash: Schema.NullOr(PlanHash),
  /** Paths that the backup could not read: none of them is deleted. */
  unread: Schema.optionalKey(Unread),
})

/** Maximum number of former passwords to try: more than one exists only after other failures. */
export const former_passwords_max = 4

/** The password does not exist yet, or an earlier attempt has stored it. */
export const EnrollmentOrder = Schema.Struct({
  job_type: Schema.tag("target_enroll"),
  ...about,
  ...of_target,
  /** Passwords of the project's deleted targets for this bucket: one may open their repository. */
  former_password_refs: Schema.optionalKey(
    Schema.Array(SecretRef).check(Schema.isMaxLength(former_passwords_max)),
  ),
  /** Another target owns the bucket: the enrollment is rejected after the keys were verified. */
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

/** Fields of an undelete or a restore test of one backup. */
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
