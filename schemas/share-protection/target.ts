/**
 * A target: a bucket with object lock for one repository of the backup engine.
 *
 * Both shapes share one aggregate. Shape B's bucket_name, s3_access_key_ref, s3_secret_key_ref,
 * engine_key_ref and engine_key_trust_id are here bucket, the two refs of vault_secret_map,
 * repository_password_ref and trust_id; the gateway maps the names of each shape.
 *
 * Source: document 2 §2 Target, §3 Target; DECISIONS, document 2, target create.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import {
  DomainId,
  JobId,
  ProjectId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { AddressingMode } from "#schemas/share-protection/target-template.ts"
import { Count, HttpUrl, Name, Reason, SecretRef, TrustId } from "#schemas/share-protection/text.ts"

/** S3's rules for bucket names that work in both addressing modes. */
export const BucketName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]$/u, {
    expected: "a bucket name: 3 to 63 of a-z, 0-9, dot and hyphen",
  }),
  Schema.isPattern(/^(?!.*\.\.)(?!\d+\.\d+\.\d+\.\d+$)/u, {
    expected: "a bucket name: no two dots in a row, and no IP address",
  }),
)

export const access_key_text = "Href of the S3 access key in the secrets manager."
export const secret_key_text = "Href of the S3 secret key in the secrets manager."

export const VaultSecretMap = Schema.Struct({
  access_key: SecretRef.annotateKey({ description: access_key_text, flag: "access-key" }),
  secret_key: SecretRef.annotateKey({ description: secret_key_text, flag: "secret-key" }),
}).annotate({ description: "Hrefs of both S3 keys in the secrets manager." })
export type VaultSecretMap = typeof VaultSecretMap.Type

/** Shape B calls `pending` `enrolling`. */
export const TargetStatus = Schema.Literals(["pending", "available", "error"])
export type TargetStatus = typeof TargetStatus.Type

/** The bucket's capabilities that preflight found. */
export const Capabilities = Schema.Struct({
  object_lock: Schema.Boolean.annotateKey({
    description: "Whether object lock works, proven with a test object.",
  }),
  versioning: Schema.Boolean.annotateKey({ description: "Whether the bucket is versioned." }),
  lifecycle: Schema.Boolean.annotateKey({
    description: "Whether no lifecycle rule of the bucket expires objects.",
  }),
  addressing_mode: AddressingMode.annotateKey({
    description: "The addressing mode that the check used.",
  }),
  checked_at: Instant.annotateKey({ description: "Time of the check." }),
}).annotate({ description: "Findings of the last successful preflight about the bucket." })
export type Capabilities = typeof Capabilities.Type

/** The repository's usage of the bucket, in bytes. */
export const UsageStats = Schema.Struct({
  stored_bytes: Count.annotateKey({ description: "Bytes of the current object versions." }),
  noncurrent_bytes: Count.annotateKey({
    description: "Bytes of older object versions, which object lock retains.",
  }),
  objects: Count.annotateKey({ description: "Number of current objects." }),
  measured_at: Instant.annotateKey({ description: "Time of the measurement." }),
}).annotate({ description: "Measured storage of the repository in the bucket." })
export type UsageStats = typeof UsageStats.Type

/** The engine's repository format; null before enrollment. */
export const RepositoryFormat = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 99 }))

/** Preflight checks in order. */
export const PreflightCheck = Schema.Literals([
  "reachability",
  "read_write",
  "addressing_style",
  "versioning",
  "object_lock",
  "lifecycle",
])
export type PreflightCheck = typeof PreflightCheck.Type

/**
 * The fields of a target, in the order of its table's columns. Shape B renames some of them
 * (`views/target.ts`).
 */
export const target_row = {
  id: TargetId,
  project_id: Schema.NullOr(ProjectId).annotateKey({
    description: "Project that owns the bucket. Null for a bucket that the domain shares.",
  }),
  domain_id: Schema.NullOr(DomainId),
  template_id: Schema.NullOr(TargetTemplateId).annotateKey({
    description: "Template against which the bucket is registered.",
  }),
  name: Name.annotateKey({ description: "Name of the target, which need not be unique." }),
  endpoint: HttpUrl.annotateKey({
    description: "URL of the S3 server.",
    examples: ["https://s3.example.org"],
  }),
  bucket: BucketName.annotateKey({
    description: "Name of the bucket, which must have been created with object lock.",
    examples: ["team-backups"],
  }),
  region: Schema.NullOr(Name).annotateKey({
    description: "Region of the bucket. Null for the server's default.",
  }),
  addressing_mode: AddressingMode.annotateKey({
    description: "Whether requests name the bucket in the path or in the host name (virtual).",
  }),
  status: TargetStatus.annotateKey({
    description:
      "`pending` until the enrollment job succeeds, then `available`. `error` if it failed.",
  }),
  reason: Schema.NullOr(Reason).annotateKey({
    description: "Why the last enrollment failed. Null unless the status is `error`.",
  }),
  trust_id: Schema.NullOr(TrustId).annotateKey({
    description: "ID of the trust with which jobs read the secrets.",
  }),
  access_key_ref: Schema.NullOr(SecretRef).annotateKey({ description: access_key_text }),
  secret_key_ref: Schema.NullOr(SecretRef).annotateKey({ description: secret_key_text }),
  ca_cert_ref: Schema.NullOr(SecretRef).annotateKey({
    description: "Href of the CA certificate of the endpoint. Null for a public CA.",
  }),
  repository_password_ref: Schema.NullOr(SecretRef).annotateKey({
    description: "Href of the repository's password. Null until the target is enrolled.",
  }),
  registered_by: Schema.NullOr(Name).annotateKey({
    description: "ID of the user who registered the target.",
  }),
  capabilities: Schema.NullOr(Capabilities).annotateKey({
    description: "Findings of the last successful preflight. Null before the first one.",
  }),
  usage_stats: Schema.NullOr(UsageStats).annotateKey({
    description: "Measured storage. Null before the first measurement.",
  }),
  preflight_at: Schema.NullOr(Instant).annotateKey({
    description: "Time of the last preflight. Null before the first one.",
  }),
  format: Schema.NullOr(RepositoryFormat).annotateKey({
    description: "Version of the repository's format. Null until the target is enrolled.",
  }),
  engine_profile: Schema.NullOr(Name).annotateKey({
    description: "Cryptographic profile of the backup engine. Null until the target is enrolled.",
  }),
  /** The running job that upgrades the format, if any. */
  format_job_id: Schema.NullOr(JobId),
  job_id: JobId.annotateKey({ description: "ID of the job of the last enrollment." }),
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}
export type TargetRow = Schema.Struct<typeof target_row>["Type"]

const changeable = {
  ...Struct.pick(target_row, [
    "name",
    "endpoint",
    "bucket",
    "trust_id",
    "ca_cert_ref",
    "addressing_mode",
    "region",
  ]),
  vault_secret_map: Schema.NullOr(VaultSecretMap).annotateKey({
    description: "Hrefs of both S3 keys. Null if they are not set.",
  }),
}

/** The fields that define a target. */
export const target_fields = {
  ...changeable,
  ...Struct.pick(target_row, ["project_id", "domain_id", "template_id", "registered_by"]),
}

export const target_changes = optional(changeable)

export const enrollment_result = {
  repository_password_ref: SecretRef,
  capabilities: Capabilities,
  format: RepositoryFormat,
  engine_profile: Name,
}

/** Registers a bucket; `job_id` is its enrollment job. */
export const CreateTarget = message("CreateTarget", { ...target_fields, job_id: JobId })
export const UpdateTarget = message("UpdateTarget", target_changes)
/** The location of a repository. */
const Place = Schema.Struct(Struct.pick(target_row, ["endpoint", "bucket", "addressing_mode"]))

/**
 * The enrollment job created the repository, or found it.
 *
 * `place` is its location: if the target was moved meanwhile, the enrollment failed. Not checked if
 * absent.
 */
export const CompleteEnrollment = message("CompleteEnrollment", {
  job_id: JobId,
  ...enrollment_result,
  place: Schema.optionalKey(Place),
})
export const FailEnrollment = message("FailEnrollment", { job_id: JobId, reason: Reason })
/** Enrolls again after an error; `job_id` is the new job. */
export const RestartEnrollment = message("RestartEnrollment", { job_id: JobId })
/** Result of a preflight outside an enrollment; `reason` is null if all checks passed. */
export const RecordPreflight = message("RecordPreflight", {
  capabilities: Schema.NullOr(Capabilities),
  reason: Schema.NullOr(Reason),
  at: Instant,
})
/** A policy references the target. */
export const RegisterTargetPolicy = message("RegisterTargetPolicy", {})
export const DeregisterTargetPolicy = message("DeregisterTargetPolicy", {})
/** A new backup uses the target: rejected during a format upgrade. */
export const RegisterTargetBackup = message("RegisterTargetBackup", {})
/**
 * Subtracts expired or deleted backups. `at` is the time of a tenant's delete of a backup that
 * retention would keep: rejected while the repository is locked.
 */
export const DeregisterTargetBackups = message("DeregisterTargetBackups", {
  count: Schema.Int.check(Schema.isGreaterThan(0)),
  at: Schema.optionalKey(Instant),
})
/** A restore reads from the target: rejected during a format upgrade; no other effect. */
export const CheckTargetReadable = message("CheckTargetReadable", {})
export const StartFormatUpgrade = message("StartFormatUpgrade", { job_id: JobId })
export const CompleteFormatUpgrade = message("CompleteFormatUpgrade", {
  job_id: JobId,
  to_format: RepositoryFormat,
})
export const FailFormatUpgrade = message("FailFormatUpgrade", { job_id: JobId, reason: Reason })
export const RecordTargetUsage = message("RecordTargetUsage", { usage_stats: UsageStats })
/**
 * All objects that its repository needs are locked until then. No effect if an equal or later time
 * is known.
 */
export const RecordTargetLocks = message("RecordTargetLocks", { protected_until: Instant })
export const DeleteTarget = message("DeleteTarget", {})

export const TargetCommand = Schema.Union([
  CreateTarget,
  UpdateTarget,
  CompleteEnrollment,
  FailEnrollment,
  RestartEnrollment,
  RecordPreflight,
  RegisterTargetPolicy,
  DeregisterTargetPolicy,
  RegisterTargetBackup,
  DeregisterTargetBackups,
  CheckTargetReadable,
  StartFormatUpgrade,
  CompleteFormatUpgrade,
  FailFormatUpgrade,
  RecordTargetUsage,
  RecordTargetLocks,
  DeleteTarget,
])
export type TargetCommand = typeof TargetCommand.Type
