/**
 * What the API takes for a target template. Source: document 2 §2 Target template; DECISIONS,
 * document 2, template.
 */
import { Schema } from "effect"
import { DomainId } from "#schemas/share-protection/id.ts"
import { Retention } from "#schemas/share-protection/retention.ts"
import { AddressingMode, BucketScheme } from "#schemas/share-protection/target-template.ts"
import { HttpUrl, Name, SecretRef } from "#schemas/share-protection/text.ts"

/** `domain_id` is the caller's own domain, where it is given. */
export const NewTargetTemplate = Schema.Struct({
  name: Name,
  endpoint: HttpUrl,
  bucket_scheme: BucketScheme,
  region: Schema.optionalKey(Schema.NullOr(Name)),
  provider: Schema.optionalKey(Schema.NullOr(Name)),
  addressing_mode: Schema.optionalKey(AddressingMode),
  ca_cert_ref: Schema.optionalKey(Schema.NullOr(SecretRef)),
  default_retention: Schema.optionalKey(Schema.NullOr(Retention)),
  domain_id: Schema.optionalKey(DomainId),
}).annotate({ identifier: "NewTargetTemplate" })

export const TargetTemplateChanges = Schema.Struct({
  name: Schema.optionalKey(Name),
  default_retention: Schema.optionalKey(Schema.NullOr(Retention)),
})
