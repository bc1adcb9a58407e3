/** Events of a target template. Stream: share-protection.target-template.<id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import {
  CreateTargetTemplate,
  UpdateTargetTemplate,
} from "#schemas/share-protection/target-template.ts"

export const TargetTemplateCreated = message(
  "TargetTemplateCreated",
  Struct.omit(CreateTargetTemplate.fields, ["type"]),
)
/** Contains only the changed fields. */
export const TargetTemplateUpdated = message(
  "TargetTemplateUpdated",
  Struct.omit(UpdateTargetTemplate.fields, ["type"]),
)
export const TemplateTargetRegistered = message("TemplateTargetRegistered", {})
export const TemplateTargetDeregistered = message("TemplateTargetDeregistered", {})
export const TemplatePolicyRegistered = message("TemplatePolicyRegistered", {})
export const TemplatePolicyDeregistered = message("TemplatePolicyDeregistered", {})
export const TargetTemplateDeleted = message("TargetTemplateDeleted", {})

export const TargetTemplateEvent = Schema.Union([
  TargetTemplateCreated,
  TargetTemplateUpdated,
  TemplateTargetRegistered,
  TemplateTargetDeregistered,
  TemplatePolicyRegistered,
  TemplatePolicyDeregistered,
  TargetTemplateDeleted,
]).pipe(Schema.toTaggedUnion("type"))
export type TargetTemplateEvent = typeof TargetTemplateEvent.Type
