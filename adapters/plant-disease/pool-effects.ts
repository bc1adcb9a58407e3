/** Calls of the predictor's pool as effects; interruption cancels them. */
import { Effect } from "effect"
import {
  InferenceFailed,
  type Predicted,
  type PredictFailure,
  TooLarge,
  Undecodable,
  WrongType,
} from "#actors/plant-disease/predictor.ts"
import type { Cancel, Failure, Pool, PredictedImage, PreparedImage } from "#predictor"

const isFailure = (result: unknown): result is Failure =>
  typeof result === "object" &&
  result !== null &&
  "kind" in result &&
  (result.kind === "refused" || result.kind === "failed")

const failureOf = (result: Failure): PredictFailure => {
  const { detail } = result
  if (result.kind === "failed") return new InferenceFailed({ detail })
  switch (result.problem) {
    case "type":
      return new WrongType({ detail })
    case "size":
      return new TooLarge({ detail })
    case "content":
      return new Undecodable({ detail })
  }
}

/** Waits for a result of the pool. Interruption removes the job from its queue. */
export const callPool = <A>(start: (callback: (result: A | Failure) => void) => Cancel) =>
  Effect.callback<A, PredictFailure>((resume) => {
    const cancel = start((result) =>
      resume(isFailure(result) ? Effect.fail(failureOf(result)) : Effect.succeed(result)),
    )
    return Effect.sync(cancel)
  })

/** Prepares and infers in one call, so that the image is queued for inference at once. */
export const prepareAndInfer = (
  pool: Pool,
  image: Uint8Array,
  toPrediction: (
    prepared: PreparedImage | PredictedImage,
    probabilities: Float32Array,
  ) => Predicted,
  callback: (result: Predicted | Failure) => void,
): Cancel => {
  let is_cancelled = false
  let cancel = pool.predict(image, (prepared) => {
    if (is_cancelled) return
    if (prepared.kind === "predicted") {
      const { row } = prepared
      return callback(
        typeof row === "string" ? { kind: "failed", detail: row } : toPrediction(prepared, row),
      )
    }
    if (prepared.kind !== "prepared") return callback(prepared)
    cancel = pool.infer(prepared.rgb, (result) =>
      callback(result instanceof Float32Array ? toPrediction(prepared, result) : result),
    )
  })
  return () => {
    is_cancelled = true
    cancel()
  }
}
