/**
 * The API's representation of a target, in both shapes.
 *
 * Source: document 2 §2 Target, §4 PATCH /v1/targets/{id}; DECISIONS, document 2, target create.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { target_changes, target_row, VaultSecretMap } from "#schemas/share-protection/target.ts"
import { Reason, SecretRef } from "#schemas/share-protection/text.ts"

/** Fields that are hidden, or that have another form in the API. */
export const hidden_a = [
  "domain_id",
  "template_id",
  "access_key_ref",
  "secret_key_ref",
  "format_job_id",
] as const
export const hidden_b = ["domain_id", "endpoint", "format_job_id"] as const

export const names_a = { format: "repository_format" } as const
export const names_b = {
  ...names_a,
  bucket: "bucket_name",
  trust_id: "engine_key_trust_id",
  access_key_ref: "s3_access_key_ref",
  secret_key_ref: "s3_secret_key_ref",
  repository_password_ref: "engine_key_ref",
} as const

export const TargetA = Schema.Struct({
  ...Struct.renameKeys(Struct.omit(target_row, hidden_a), names_a),
  vault_secret_map: Schema.NullOr(VaultSecretMap),
}).annotate({ identifier: "Target" })
export type TargetA = typeof TargetA.Type

export const StatusB = Schema.Literals(["enrolling", "available", "error"])

export const TargetB = Schema.Struct({
  ...Struct.renameKeys(Struct.omit(target_row, hidden_b), names_b),
  status: StatusB,
}).annotate({ identifier: "TargetBucket" })
export type TargetB = typeof TargetB.Type

const vault_secret_refs = Schema.optionalKey(Schema.Tuple([SecretRef, SecretRef])).annotateKey({
  description: "Both hrefs, access key first",
  flag: "secret-ref",
})

/** A body may give the secrets in either form, but not different secrets in both. */
const oneForm = Schema.makeFilter<{
  readonly vault_secret_map?: unknown
  readonly vault_secret_refs?: unknown
}>(
  ({ vault_secret_map, vault_secret_refs }) =>
    vault_secret_map === undefined ||
    vault_secret_refs === undefined ||
    "vault_secret_map or vault_secret_refs, not both",
)

export const NewTargetA = Schema.Struct({
  ...Struct.pick(target_row, ["name", "endpoint", "bucket"]),
  ...Struct.omit(target_changes, ["name", "endpoint", "bucket"]),
  vault_secret_refs,
})
  .check(oneForm)
  .annotate({ identifier: "NewTarget" })

export const TargetChangesA = Schema.Struct({ ...target_changes, vault_secret_refs }).check(oneForm)

/** In Shape B the template's fields are immutable, and the keys have other names. */
const changes_b = Struct.omit(target_changes, [
  "endpoint",
  "bucket",
  "ca_cert_ref",
  "addressing_mode",
  "region",
  "vault_secret_map",
])

const keys_b = {
  s3_access_key_ref: SecretRef.annotateKey({ description: "Href of the access key" }),
  s3_secret_key_ref: SecretRef.annotateKey({ description: "Href of the secret key" }),
}

/** `project_id` is the owner of the bucket: required for templates with a bucket per project. */
export const NewTargetB = Schema.Struct({
  bucket_name: target_row.bucket,
  template_id: TargetTemplateId.annotateKey({
    description: "The template that it is registered against",
  }),
  ...keys_b,
  ...changes_b,
  project_id: Schema.optionalKey(target_row.project_id),
}).annotate({ identifier: "NewTargetBucket" })

export const TargetChangesB = Schema.Struct({
  ...changes_b,
  ...optional(keys_b),
  engine_key_trust_id: changes_b.trust_id,
})

/** The result of a preflight; `detail` names the failed check. */
export const PreflightResult = Schema.Struct({
  target_id: TargetId,
  status: Schema.Literals(["available", "failed"]),
  detail: Schema.NullOr(Reason),
}).annotate({ identifier: "PreflightResult" })
