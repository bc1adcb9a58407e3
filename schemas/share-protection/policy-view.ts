/**
 * A policy as the API shows it and takes it, in either shape.
 *
 * Source: document 2 §2 Policy, §4 rule 2; DECISIONS, document 2, policy.
 */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { ShareId, TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { policy_changes, policy_fields } from "#schemas/share-protection/policy.ts"

const fields = Struct.omit(policy_fields, ["target_id", "target_template_id"])

const shown = {
  ...fields,
  share_id: ShareId,
  /** The last time that its schedule asked for and that was taken or skipped. */
  last_tick: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
}

export const PolicyA = Schema.Struct({ ...shown, target_id: TargetId }).annotate({
  identifier: "Policy",
})
export type PolicyA = typeof PolicyA.Type

export const PolicyB = Schema.Struct({ ...shown, target_template_id: TargetTemplateId }).annotate({
  identifier: "PolicyOfTemplate",
})
export type PolicyB = typeof PolicyB.Type

const { name, schedule, retention } = fields
const choices = Struct.omit(policy_changes, ["name", "schedule", "retention"])

export const NewPolicyA = Schema.Struct({
  name,
  share_id: ShareId,
  target_id: TargetId,
  schedule,
  retention,
  ...choices,
}).annotate({ identifier: "NewPolicy" })

/** Without `retention` the template's default holds. */
export const NewPolicyB = Schema.Struct({
  name,
  share_id: ShareId,
  target_template_id: TargetTemplateId,
  schedule,
  retention: Schema.optionalKey(retention),
  ...choices,
}).annotate({ identifier: "NewPolicyOfTemplate" })

export const PolicyChanges = Schema.Struct(policy_changes)
