/**
 * A target as the API shows it and takes it, in either shape.
 *
 * Source: document 2 §2 Target, §4 PATCH /v1/targets/{id}; DECISIONS, document 2, target create.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { JobId, ProjectId, TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import {
  BucketName,
  Capabilities,
  RepositoryFormat,
  TargetStatus,
  UsageStats,
  VaultSecretMap,
} from "#schemas/share-protection/target.ts"
import { AddressingMode } from "#schemas/share-protection/target-template.ts"
import { HttpUrl, Name, Reason, SecretRef, TrustId } from "#schemas/share-protection/text.ts"

/** What both shapes show. */
const shown = {
  id: TargetId,
  project_id: Schema.NullOr(ProjectId),
  name: Name,
  addressing_mode: AddressingMode,
  ca_cert_ref: Schema.NullOr(SecretRef),
  region: Schema.NullOr(Name),
  preflight_at: Schema.NullOr(Instant),
  capabilities: Schema.NullOr(Capabilities),
  usage_stats: Schema.NullOr(UsageStats),
  repository_format: Schema.NullOr(RepositoryFormat),
  engine_profile: Schema.NullOr(Name),
  /** Why its enrollment failed. */
  reason: Schema.NullOr(Reason),
  registered_by: Schema.NullOr(Name),
  /** Of its last enrollment. */
  job_id: JobId,
  created_at: Instant,
  updated_at: Instant,
}

export const TargetA = Schema.Struct({
  ...shown,
  endpoint: HttpUrl,
  bucket: BucketName,
  status: TargetStatus,
  trust_id: Schema.NullOr(TrustId),
  vault_secret_map: Schema.NullOr(VaultSecretMap),
  repository_password_ref: Schema.NullOr(SecretRef),
}).annotate({ identifier: "Target" })
export type TargetA = typeof TargetA.Type

export const StatusB = Schema.Literals(["enrolling", "available", "error"])

export const TargetB = Schema.Struct({
  ...shown,
  bucket_name: BucketName,
  template_id: Schema.NullOr(TargetTemplateId),
  status: StatusB,
  s3_access_key_ref: Schema.NullOr(SecretRef),
  s3_secret_key_ref: Schema.NullOr(SecretRef),
  engine_key_ref: Schema.NullOr(SecretRef),
  engine_key_trust_id: Schema.NullOr(TrustId),
}).annotate({ identifier: "TargetBucket" })
export type TargetB = typeof TargetB.Type

/** The access key's href, and the secret key's. */
const VaultSecretRefs = Schema.Tuple([SecretRef, SecretRef])

const Secrets = Schema.NullOr(VaultSecretMap)

/** Both forms of the secrets in one body must not contradict each other: there is one of them. */
const oneForm = Schema.makeFilter<{
  readonly vault_secret_map?: unknown
  readonly vault_secret_refs?: unknown
}>(
  ({ vault_secret_map, vault_secret_refs }) =>
    vault_secret_map === undefined ||
    vault_secret_refs === undefined ||
    "vault_secret_map or vault_secret_refs, not both",
)

const choices = {
  trust_id: Schema.optionalKey(Schema.NullOr(TrustId)),
  vault_secret_map: Schema.optionalKey(Secrets),
  vault_secret_refs: Schema.optionalKey(VaultSecretRefs),
  ca_cert_ref: Schema.optionalKey(Schema.NullOr(SecretRef)),
  addressing_mode: Schema.optionalKey(AddressingMode),
  region: Schema.optionalKey(Schema.NullOr(Name)),
}

export const NewTargetA = Schema.Struct({
  name: Name,
  endpoint: HttpUrl,
  bucket: BucketName,
  ...choices,
})
  .check(oneForm)
  .annotate({ identifier: "NewTarget" })

export const TargetChangesA = Schema.Struct({
  name: Schema.optionalKey(Name),
  endpoint: Schema.optionalKey(HttpUrl),
  bucket: Schema.optionalKey(BucketName),
  ...choices,
}).check(oneForm)

/** `project_id` is whose bucket it is: needed below a template with a bucket per project. */
export const NewTargetB = Schema.Struct({
  bucket_name: BucketName,
  template_id: TargetTemplateId,
  s3_access_key_ref: SecretRef,
  s3_secret_key_ref: SecretRef,
  name: Schema.optionalKey(Name),
  project_id: Schema.optionalKey(Schema.NullOr(ProjectId)),
  trust_id: Schema.optionalKey(Schema.NullOr(TrustId)),
}).annotate({ identifier: "NewTargetBucket" })

export const TargetChangesB = Schema.Struct({
  name: Schema.optionalKey(Name),
  s3_access_key_ref: Schema.optionalKey(SecretRef),
  s3_secret_key_ref: Schema.optionalKey(SecretRef),
  trust_id: Schema.optionalKey(Schema.NullOr(TrustId)),
  engine_key_trust_id: Schema.optionalKey(Schema.NullOr(TrustId)),
})

/** What a preflight found; `detail` names the check that failed. */
export const PreflightResult = Schema.Struct({
  target_id: TargetId,
  status: Schema.Literals(["available", "failed"]),
  detail: Schema.NullOr(Reason),
}).annotate({ identifier: "PreflightResult" })
