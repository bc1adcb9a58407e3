/** The port of the image classifier: from an image file to probabilities. */
import { Context, type Effect, Schema } from "effect"
import type { ModelInfo } from "#schemas/plant-disease/model.ts"

export { side } from "#schemas/image-side.ts"

/** Not a JPEG or PNG by its first bytes: 415. */
export class WrongType extends Schema.TaggedError<WrongType>()("WrongType", {
  detail: Schema.String,
}) {}

/** Damaged or truncated: 422. */
export class Undecodable extends Schema.TaggedError<Undecodable>()("Undecodable", {
  detail: Schema.String,
}) {}

/** More bytes or pixels than allowed: 413. */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", {
  detail: Schema.String,
}) {}

/** The queue is full: 503, retry after `retry_after_seconds`. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", {
  detail: Schema.String,
  retry_after_seconds: Schema.Int,
}) {}

/** The network failed or returned an invalid probability: 500. */
export class InferenceFailed extends Schema.TaggedError<InferenceFailed>()("InferenceFailed", {
  detail: Schema.String,
}) {}

export type PredictFailure = WrongType | Undecodable | TooLarge | Busy | InferenceFailed

export interface Predicted {
  /** By class index, each 0 to 1. */
  readonly probabilities: Float32Array
  /** The size of the decoded image before resizing, in pixels. */
  readonly width: number
  readonly height: number
  /** SHA-256 of the file, in hex. */
  readonly sha256: string
  /** From the start of the thread's task to the result, in milliseconds. */
  readonly milliseconds: number
}

export class Predictor extends Context.Service<
  Predictor,
  {
    readonly model: ModelInfo
    /** Transfers the image: its bytes must not be used afterwards. */
    readonly predict: (image: Uint8Array) => Effect.Effect<Predicted, PredictFailure>
    /**
     * A heatmap of 224 by 224 as PNG: the parts of the image that support the class, by default the
     * most likely one. Transfers the image.
     */
    readonly explain: (
      image: Uint8Array,
      class_index?: number,
    ) => Effect.Effect<Uint8Array, PredictFailure>
    /**
     * Runs the network on `count` concatenated tensors, float32[224, 224, 3] each, and returns
     * their rows of probabilities. Each tensor takes a place in the queue, so `plant.queue_max` is
     * the largest count.
     */
    readonly infer: (
      tensors: Float32Array,
      count: number,
    ) => Effect.Effect<Float32Array, Busy | InferenceFailed>
    /** Images in the queue, and images being processed. */
    readonly load: Effect.Effect<{ readonly waiting: number; readonly running: number }>
    /** The number of runs of the network, indexed by batch size. */
    readonly batches: Effect.Effect<ReadonlyArray<number>>
  }
>()("actors/plant-disease/Predictor") {}
