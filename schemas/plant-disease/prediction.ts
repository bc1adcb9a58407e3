/**
 * The record of a prediction that a client received. It never has the image itself.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { recording } from "#schemas/spooled.ts"

const Sha256 = Schema.String.check(Schema.isPattern(/^[\da-f]{64}$/u))
const Probability = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Milliseconds = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

export const PredictionFact = Schema.Struct({
  /** The time of the request. */
  at: Instant,
  /** The most likely class, which the response named. */
  class: Schema.String,
  probability: Probability,
  /** SHA-256 of the uploaded file, in hex. */
  image_sha256: Sha256,
  image_bytes: Count,
  /** SHA-256 of the model's file, in hex. */
  model_sha256: Sha256,
  /** From the complete image to the result. */
  milliseconds: Milliseconds,
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
})
export type PredictionFact = typeof PredictionFact.Type

export const RecordPredictions = recording("RecordPredictions", PredictionFact)
export type RecordPredictions = typeof RecordPredictions.Type
