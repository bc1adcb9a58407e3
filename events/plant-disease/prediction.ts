/**
 * The predictions that one node made, as its spool told them.
 *
 * Stream: plant-disease.prediction.<node id>.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import { place } from "#schemas/spooled.ts"

/** Somebody was told a class of an image, which is known by its hash alone. */
export const PredictionMade = message("PredictionMade", { ...place, ...PredictionFact.fields })

export const PredictionEvent = Schema.Union([PredictionMade]).pipe(Schema.toTaggedUnion("type"))
export type PredictionEvent = typeof PredictionEvent.Type
