/** Events of a rollout. Stream: share-protection.rollout.<id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { CreateRollout, FailReplacement } from "#schemas/share-protection/rollout.ts"

const created = Struct.omit(CreateRollout.fields, ["type"])
const { reason } = FailReplacement.fields
const replacement = Struct.omit(FailReplacement.fields, ["type", "reason"])

export const RolloutCreated = message("RolloutCreated", created)
export const ReplacementStarted = message("ReplacementStarted", {
  ...replacement,
  domain_id: DomainId,
})
export const ReplacementCompleted = message("ReplacementCompleted", {
  ...replacement,
  domain_id: DomainId,
})
export const RolloutDomainCompleted = message("RolloutDomainCompleted", { domain_id: DomainId })
/** All domains are done. */
export const RolloutSucceeded = message("RolloutSucceeded", {})
/** The new worker did not start; the old one takes jobs again. */
export const RolloutHalted = message("RolloutHalted", {
  ...replacement,
  domain_id: DomainId,
  reason,
})

export const RolloutEvent = Schema.Union([
  RolloutCreated,
  ReplacementStarted,
  ReplacementCompleted,
  RolloutDomainCompleted,
  RolloutSucceeded,
  RolloutHalted,
]).pipe(Schema.toTaggedUnion("type"))
export type RolloutEvent = typeof RolloutEvent.Type
