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
  name: Name.annotateKey({ description: "Name of the template, which need not be unique." }),
  endpoint: HttpUrl.annotateKey({
    description: "URL of the S3 server.",
    examples: ["https://s3.example.org"],
  }),
  region: Schema.NullOr(Name).annotateKey({
    description: "Region of the buckets. Null for the server's default.",
  }),
  provider: Schema.NullOr(Name).annotateKey({
    description: "Name of the provider of the S3 server, for display only.",
  }),
  bucket_scheme: BucketScheme.annotateKey({
    description: "Whether all projects of the domain share buckets, or each has its own.",
  }),
  addressing_mode: AddressingMode.annotateKey({
    description: "Whether requests name the bucket in the path (default) or the host name.",
  }),
  ca_cert_ref: Schema.NullOr(SecretRef).annotateKey({
    description: "Href of the CA certificate of the endpoint. Null for a public CA.",
  }),
  default_retention: Schema.NullOr(Retention).annotateKey({
    description: "Retention of policies that do not set their own. Null for none.",
  }),
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
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}).annotate({
  identifier: "TargetTemplate",
  description: "An S3 service that a domain provides for the backups of its projects.",
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
