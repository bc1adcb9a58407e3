/**
 * Predictions made by one node, as reported by its spool.
 *
 * Stream: plant-disease.prediction.<node id>.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import { place } from "#schemas/spooled.ts"

/** An image was classified; it is identified by its hash alone. */
export const PredictionMade = message("PredictionMade", { ...place, ...PredictionFact.fields })

export const PredictionEvent = Schema.Union([PredictionMade]).pipe(Schema.toTaggedUnion("type"))
export type PredictionEvent = typeof PredictionEvent.Type
