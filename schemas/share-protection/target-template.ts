/**
 * A target template (Shape B): an S3 service that a domain's owner offers for buckets.
 *
 * Source: document 2 §2 Target template; DECISIONS, document 2, template.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { DomainId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { Retention } from "#schemas/share-protection/retention.ts"
import { HttpUrl, Name, SecretRef } from "#schemas/share-protection/text.ts"

/** How a bucket is addressed: in the path, or as part of the host's name. */
export const AddressingMode = Schema.Literals(["path", "virtual"])
export type AddressingMode = typeof AddressingMode.Type

/** One bucket for the whole domain, or one for each project. */
export const BucketScheme = Schema.Literals(["shared", "per_project"])

const fields = {
  name: Name,
  endpoint: HttpUrl,
  region: Schema.NullOr(Name),
  provider: Schema.NullOr(Name),
  bucket_scheme: BucketScheme,
  addressing_mode: AddressingMode,
  ca_cert_ref: Schema.NullOr(SecretRef),
  default_retention: Schema.NullOr(Retention),
}

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
/** Whatever is absent stays as it is. */
export const UpdateTargetTemplate = message("UpdateTargetTemplate", {
  name: Schema.optionalKey(Name),
  default_retention: Schema.optionalKey(Schema.NullOr(Retention)),
})
/** A bucket is registered against it: it cannot be deleted before that one is. */
export const RegisterTemplateTarget = message("RegisterTemplateTarget", {})
export const DeregisterTemplateTarget = message("DeregisterTemplateTarget", {})
/** A policy names it. */
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
