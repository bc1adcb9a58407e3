/**
 * Predicts one image, and records a fact, which does not contain the image.
 *
 * Source: document 3 §1 C; decisions, facts of searches and predictions.
 */
import { Clock, DateTime, Effect } from "effect"
import { PredictionSpool } from "#actors/plant-disease/prediction-spool.ts"
import {
  type Busy,
  InferenceFailed,
  type Predicted,
  type PredictFailure,
  Predictor,
} from "#actors/plant-disease/predictor.ts"
import type { PredictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { withPixels } from "#gateway/plant-disease/pixel-budget.ts"
import { RequestContext } from "#gateway/request-context.ts"
import type { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import type { ClassProbability } from "#schemas/plant-disease/response.ts"

/** A class with its probability and its index in the network's output. */
interface Place extends ClassProbability {
  readonly index: number
}

/** The `count` likeliest classes in order; among equals, the lower index comes first. */
export const likeliest = (
  probabilities: Float32Array,
  classes: ReadonlyArray<string>,
  count: number,
): ReadonlyArray<Place> =>
  Array.from(probabilities, (probability, index) => {
    return { class: classes[index] ?? "", probability, index }
  })
    .sort((one, other) => other.probability - one.probability || one.index - other.index)
    .slice(0, count)

export interface ImagePrediction {
  readonly likely: ReadonlyArray<Place>
  readonly best: Place
  readonly predicted: Predicted
  /** Recorded once the response is built. */
  readonly fact: PredictionFact
}

/** The fact of one image; `requested_ms` is in Unix time. */
export const factOf = Effect.fnUntraced(function* (
  requested_ms: number,
  {
    best,
    ...image
  }: { readonly best: ClassProbability } & Pick<
    PredictionFact,
    "image_sha256" | "image_bytes" | "milliseconds"
  >,
) {
  const { model } = yield* Predictor
  const { request_id, correlation_id, caller } = yield* RequestContext
  const fact: PredictionFact = {
    at: DateTime.formatIso(DateTime.makeUnsafe(requested_ms)),
    class: best.class,
    // A 32-bit probability of one may be slightly more than one in 64 bits.
    probability: Math.min(best.probability, 1),
    ...image,
    model_sha256: model.sha256,
    actor: caller.actor,
    request_id,
    correlation_id,
  }
  return fact
})

/** Predicts one image, whose memory is transferred; returns the `count` likeliest classes. */
export const predictImage = Effect.fnUntraced(function* (
  image: Uint8Array,
  count: number,
  metrics: PredictionMetrics,
): Effect.fn.Return<ImagePrediction, PredictFailure, Predictor> {
  const { predict, model } = yield* Predictor
  const requested_ms = yield* Clock.currentTimeMillis
  const image_bytes = image.length
  const predicted = yield* withPixels(image, predict).pipe(
    Effect.tapError(({ _tag }) => Effect.sync(() => metrics.count(_tag))),
  )
  metrics.count("predicted")
  metrics.took(predicted.milliseconds)
  const likely = likeliest(predicted.probabilities, model.classes, count)
  const [best] = likely
  if (best === undefined) {
    return yield* new InferenceFailed({ detail: "The network returned no class." })
  }
  const { sha256: image_sha256, milliseconds } = predicted
  const fact = yield* factOf(requested_ms, { best, image_sha256, image_bytes, milliseconds })
  return { likely, best, predicted, fact }
})

/** Adds facts to the spool, which never fails and does not wait for the log. */
export const record = Effect.fnUntraced(function* (facts: ReadonlyArray<PredictionFact>) {
  const spool = yield* PredictionSpool
  yield* Effect.forEach(facts, spool.add, { discard: true })
})

export interface Refused {
  readonly status: 413 | 415 | 422 | 500 | 503
  readonly error: string
  readonly retry_after_seconds?: Busy["retry_after_seconds"]
}

/** The response to a failure of the predictor; the network's error is only logged. */
export const failureOf = (failure: PredictFailure): Refused => {
  const { detail: error } = failure
  switch (failure._tag) {
    case "TooLarge":
      return { status: 413, error }
    case "WrongType":
      return { status: 415, error }
    case "Undecodable":
      return { status: 422, error }
    case "Busy":
      return { status: 503, error, retry_after_seconds: failure.retry_after_seconds }
    case "InferenceFailed":
      return {
        status: 500,
        error: "The network failed on this image. The server's log has the cause.",
      }
  }
}
