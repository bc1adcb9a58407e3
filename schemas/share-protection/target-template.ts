/**
 * A target template (Shape B): an S3 service that a domain's owner provides for buckets.
 *
 * Source: document 2 §2 Target template; DECISIONS, document 2, template.
 */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { DomainId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { Retention } from "#schemas/share-protection/retention.ts"
import { HttpUrl, Name, SecretRef } from "#schemas/share-protection/text.ts"

/** Where a bucket's name goes: in the path, or in the host name. */
export const AddressingMode = Schema.Literals(["path", "virtual"])
export type AddressingMode = typeof AddressingMode.Type

/** One bucket for the whole domain, or one per project. */
export const BucketScheme = Schema.Literals(["shared", "per_project"])

const fields = {
  name: Name.annotateKey({ description: "Its name" }),
  endpoint: HttpUrl.annotateKey({
    description: "Address of the S3 server",
    examples: ["https://s3.example.org"],
  }),
  region: Schema.NullOr(Name).annotateKey({ description: "Region of its buckets" }),
  provider: Schema.NullOr(Name).annotateKey({ description: "Who runs the S3 server" }),
  bucket_scheme: BucketScheme.annotateKey({ description: "Whose a bucket is" }),
  addressing_mode: AddressingMode.annotateKey({ description: "How buckets are addressed" }),
  ca_cert_ref: Schema.NullOr(SecretRef).annotateKey({
    description: "Href of the certificate authority of the endpoint",
  }),
  default_retention: Schema.NullOr(Retention),
}

/** Required fields of a new template; the others are optional. */
export const template_body = {
  ...Struct.pick(fields, ["name", "endpoint", "bucket_scheme"]),
  ...optional(Struct.omit(fields, ["name", "endpoint", "bucket_scheme"])),
}

/** Absent fields stay unchanged. */
export const template_changes = optional(Struct.pick(fields, ["name", "default_retention"]))

/** Its fields are in the order of its table's columns. */
export const TargetTemplate = Schema.Struct({
  id: TargetTemplateId,
  domain_id: DomainId,
  ...fields,
  created_at: Instant,
  updated_at: Instant,
})
export type TargetTemplate = typeof TargetTemplate.Type

export const CreateTargetTemplate = message("CreateTargetTemplate", {
  domain_id: DomainId,
  ...fields,
})
export const UpdateTargetTemplate = message("UpdateTargetTemplate", template_changes)
/** Registers a bucket with the template, which cannot be deleted before that bucket. */
export const RegisterTemplateTarget = message("RegisterTemplateTarget", {})
export const DeregisterTemplateTarget = message("DeregisterTemplateTarget", {})
/** A policy references the template. */
export const RegisterTemplatePolicy = message("RegisterTemplatePolicy", {})
export const DeregisterTemplatePolicy = message("DeregisterTemplatePolicy", {})
export const DeleteTargetTemplate = message("DeleteTargetTemplate", {})

export const TargetTemplateCommand = Schema.Union([
  CreateTargetTemplate,
  UpdateTargetTemplate,
  RegisterTemplateTarget,
  DeregisterTemplateTarget,
  RegisterTemplatePolicy,
  DeregisterTemplatePolicy,
  DeleteTargetTemplate,
])
export type TargetTemplateCommand = typeof TargetTemplateCommand.Type
