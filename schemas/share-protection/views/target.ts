/**
 * The API's representation of a target, in both shapes.
 *
 * Source: document 2 §2 Target, §4 PATCH /v1/targets/{id}; DECISIONS, document 2, target create.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import {
  access_key_text,
  secret_key_text,
  target_changes,
  target_fields,
  target_row,
} from "#schemas/share-protection/target.ts"
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
  vault_secret_map: target_fields.vault_secret_map,
}).annotate({
  identifier: "Target",
  description: "A bucket with object lock, and the backup repository in it.",
})
export type TargetA = typeof TargetA.Type

export const StatusB = Schema.Literals(["enrolling", "available", "error"])

export const TargetB = Schema.Struct({
  ...Struct.renameKeys(Struct.omit(target_row, hidden_b), names_b),
  status: StatusB.annotateKey({
    description:
      "`enrolling` until the enrollment job succeeds, then `available`. `error` if it failed.",
  }),
}).annotate({
  identifier: "TargetBucket",
  description: "A bucket that a domain registered against a template, and its backup repository.",
})
export type TargetB = typeof TargetB.Type

const vault_secret_refs = Schema.optionalKey(Schema.Tuple([SecretRef, SecretRef])).annotateKey({
  description: "Hrefs of both S3 keys, the access key first; an alternative to vault_secret_map.",
  flag: "secret-ref",
})

/** In the API document: a body with both forms. */
const both_forms = {
  properties: { vault_secret_map: {}, vault_secret_refs: {} },
  required: ["vault_secret_map", "vault_secret_refs"],
} as const

/** A body may give the secrets in either form, but not different secrets in both. */
const oneForm = Schema.makeFilter<{
  readonly vault_secret_map?: unknown
  readonly vault_secret_refs?: unknown
}>(
  ({ vault_secret_map, vault_secret_refs }) =>
    vault_secret_map === undefined ||
    vault_secret_refs === undefined ||
    "Expected vault_secret_map or vault_secret_refs, not both",
  { toJsonSchema: () => ({ not: both_forms }) },
)

export const NewTargetA = Schema.Struct({
  ...Struct.pick(target_row, ["name", "endpoint", "bucket"]),
  ...Struct.omit(target_changes, ["name", "endpoint", "bucket"]),
  vault_secret_refs,
})
  .check(oneForm)
  .annotate({ identifier: "NewTarget", description: "The bucket to register." })

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
  s3_access_key_ref: SecretRef.annotateKey({ description: access_key_text }),
  s3_secret_key_ref: SecretRef.annotateKey({ description: secret_key_text }),
}

/** `project_id` is the owner of the bucket: required for templates with a bucket per project. */
export const NewTargetB = Schema.Struct({
  bucket_name: target_row.bucket,
  template_id: TargetTemplateId.annotateKey({
    description: "Template against which to register the bucket.",
  }),
  ...keys_b,
  ...changes_b,
  project_id: Schema.optionalKey(target_row.project_id).annotateKey({
    description: "Project that owns the bucket. Required if the template's scheme is per_project.",
  }),
}).annotate({ identifier: "NewTargetBucket", description: "The bucket to register." })

export const TargetChangesB = Schema.Struct({
  ...changes_b,
  ...optional(keys_b),
  engine_key_trust_id: changes_b.trust_id,
})

/** The result of a preflight; `detail` names the failed check. */
export const PreflightResult = Schema.Struct({
  target_id: TargetId,
  status: Schema.Literals(["available", "failed"]).annotateKey({
    description: "`available` if the bucket passed all checks.",
  }),
  detail: Schema.NullOr(Reason).annotateKey({
    description: "The failed check and its cause. Null if all checks passed.",
  }),
}).annotate({ identifier: "PreflightResult", description: "The result of a preflight." })
