/**
 * The API's input for target templates. Source: document 2 §2 Target template; DECISIONS, document
 * 2, template.
 */
import { Schema } from "effect"
import { DomainId } from "#schemas/share-protection/id.ts"
import { template_body, template_changes } from "#schemas/share-protection/target-template.ts"

/** `domain_id`, if present, is the caller's own domain. */
export const NewTargetTemplate = Schema.Struct({
  ...template_body,
  domain_id: Schema.optionalKey(DomainId).annotateKey({
    description: "Domain of the template. If present, it must be the domain of the token.",
  }),
}).annotate({ identifier: "NewTargetTemplate", description: "The template to create." })

export const TargetTemplateChanges = Schema.Struct(template_changes)
