/** Events of reconciliation. Stream: share-protection.reconciliation.main. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import {
  FinishReconciliation,
  StartReconciliation,
} from "#schemas/share-protection/reconciliation.ts"

const started = Struct.omit(StartReconciliation.fields, ["type"])
const finished = Struct.omit(FinishReconciliation.fields, ["type"])

export const ReconciliationTriggered = message("ReconciliationTriggered", {})
export const ReconciliationStarted = message("ReconciliationStarted", started)
export const ReconciliationFinished = message("ReconciliationFinished", finished)

export const ReconciliationEvent = Schema.Union([
  ReconciliationTriggered,
  ReconciliationStarted,
  ReconciliationFinished,
]).pipe(Schema.toTaggedUnion("type"))
export type ReconciliationEvent = typeof ReconciliationEvent.Type
