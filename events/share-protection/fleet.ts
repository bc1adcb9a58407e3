/** Events of a fleet. Stream: share-protection.fleet.<worker project id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import { AllowBoot, RecordBootFailure } from "#schemas/share-protection/fleet.ts"
import { RolloutId } from "#schemas/share-protection/id.ts"

const allowed = Struct.omit(AllowBoot.fields, ["type"])
const failed = Struct.omit(RecordBootFailure.fields, ["type"])

export const BootAllowed = message("BootAllowed", allowed)
export const BootFailureRecorded = message("BootFailureRecorded", failed)
export const RolloutAllowed = message("RolloutAllowed", { rollout_id: RolloutId })
export const RolloutEnded = message("RolloutEnded", { rollout_id: RolloutId })

export const FleetEvent = Schema.Union([
  BootAllowed,
  BootFailureRecorded,
  RolloutAllowed,
  RolloutEnded,
]).pipe(Schema.toTaggedUnion("type"))
export type FleetEvent = typeof FleetEvent.Type
