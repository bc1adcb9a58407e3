/** The port to a network that knows leaves: from an image's bytes to probabilities. */
import { Context, type Effect, Schema } from "effect"
import type { ModelInfo } from "#schemas/plant-disease/model.ts"

export { side } from "#schemas/image-side.ts"

/** No JPEG or PNG, by its first bytes: 415. */
export class WrongType extends Schema.TaggedError<WrongType>()("WrongType", {
  detail: Schema.String,
}) {}

/** It cannot be decoded, or not to its end: 422. */
export class Undecodable extends Schema.TaggedError<Undecodable>()("Undecodable", {
  detail: Schema.String,
}) {}

/** More bytes or pixels than are taken: 413. */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", {
  detail: Schema.String,
}) {}

/** The queue is full: 503, to be asked again after `retry_after_seconds`. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", {
  detail: Schema.String,
  retry_after_seconds: Schema.Int,
}) {}

/** The network failed, or answered what is no probability: 500. */
export class InferenceFailed extends Schema.TaggedError<InferenceFailed>()("InferenceFailed", {
  detail: Schema.String,
}) {}

export type PredictFailure = WrongType | Undecodable | TooLarge | Busy | InferenceFailed

export interface Predicted {
  /** By the index of the class; each 0 to 1. */
  readonly probabilities: Float32Array
  /** The image as decoded, before it was resized, in pixels. */
  readonly width: number
  readonly height: number
  /** SHA-256 of the image's bytes, in hex. */
  readonly sha256: string
  /** From the moment a thread had it until its answer, in milliseconds. */
  readonly milliseconds: number
}

export class Predictor extends Context.Service<
  Predictor,
  {
    readonly model: ModelInfo
    /** The image is handed over: its bytes are not to be read, or given again, afterwards. */
    readonly predict: (image: Uint8Array) => Effect.Effect<Predicted, PredictFailure>
    /**
     * A PNG of 224 by 224: where the image speaks for the class of this index (of the likeliest
     * one, if absent), over the image itself. The image is handed over here too.
     */
    readonly explain: (
      image: Uint8Array,
      class_index?: number,
    ) => Effect.Effect<Uint8Array, PredictFailure>
    /**
     * `count` tensors one after the other, float32[224, 224, 3] each, as the network wants them;
     * as many rows of probabilities. They wait in the queue one by one, so that more than
     * `plant.queue_max` never find room.
     */
    readonly infer: (
      tensors: Float32Array,
      count: number,
    ) => Effect.Effect<Float32Array, Busy | InferenceFailed>
    /** Images that wait, and images that are under way. */
    readonly load: Effect.Effect<{ readonly waiting: number; readonly running: number }>
    /** Runs of the network so far, by the images that each had: the index. */
    readonly batches: Effect.Effect<ReadonlyArray<number>>
  }
>()("actors/plant-disease/Predictor") {}
