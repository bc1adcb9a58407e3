/**
 * Metrics of predictions, as Prometheus text: outcomes, durations, queue lengths and batch sizes.
 * Source: DECISIONS, "health".
 */
import { Context, Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { PredictFailure, Predictor } from "#actors/plant-disease/predictor.ts"
import { histogramText, plainText } from "#schemas/metric.ts"

export type Outcome = "predicted" | PredictFailure["_tag"]

/** Every outcome is reported from the start as zero, so that Prometheus sees the first increase. */
const outcomes: ReadonlyArray<Outcome> = [
  "predicted",
  "WrongType",
  "Undecodable",
  "TooLarge",
  "Busy",
  "InferenceFailed",
]

/**
 * Upper bounds of the duration buckets in seconds: from a small network on an idle machine to a
 * photo of 50 megapixels.
 */
const bounds_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export interface PredictionMetrics {
  readonly count: (outcome: Outcome) => void
  /** Records the time from the thread's receipt of an image to its result. */
  readonly took: (milliseconds: number) => void
  readonly text: (predictor: Predictor["Service"]) => Effect.Effect<string>
}

/**
 * Number of images per run of the network; the bounds are powers of two up to the largest batch.
 */
const batchText = (batches: ReadonlyArray<number>) => {
  const largest = Math.max(1, batches.length - 1)
  const bounds = Array.from({ length: Math.ceil(Math.log2(largest)) + 1 }, (_, n) => 2 ** n)
  const counts = [...bounds.map(() => 0), 0]
  let images = 0
  for (const [size, runs] of batches.entries()) {
    const place = bounds.findIndex((bound) => size <= bound)
    counts[place === -1 ? bounds.length : place] = runs + (counts[place] ?? 0)
    images += size * runs
  }
  return histogramText(batch_size, bounds, [{ counts, sum: images }])
}

const batch_size = {
  name: "almanac_plant_batch_size",
  type: "histogram",
  help: "Number of images in one run of the network.",
} as const

const predictions = "almanac_plant_predictions_total"
const duration = "almanac_plant_prediction_seconds"

/** Counts in a separate registry for each server of this process. */
export const predictionMetrics = (): PredictionMetrics => {
  const registry = Context.make(Metric.MetricRegistry, new Map())
  const ended = (outcome: Outcome) =>
    Metric.counter(predictions, {
      description: "Images, by result.",
      attributes: { outcome },
    })
  for (const outcome of outcomes) ended(outcome).updateUnsafe(0, registry)
  const times = Metric.histogram(duration, {
    description:
      "Time from the start of an image's prediction on a thread to its result, in seconds.",
    boundaries: bounds_s,
  })
  // The series exists before its first value.
  times.valueUnsafe(registry)

  return {
    count: (outcome) => ended(outcome).updateUnsafe(1, registry),
    took: (milliseconds) => times.updateUnsafe(milliseconds / 1000, registry),
    text: ({ load, batches }) =>
      Effect.gen(function* () {
        const { waiting, running } = yield* load
        return [
          PrometheusMetrics.formatUnsafe(registry),
          plainText("almanac_plant_", [
            ["gauge", "waiting", "Images waiting for a thread.", waiting],
            ["gauge", "running", "Images that threads are processing.", running],
          ]),
          batchText(yield* batches),
        ].join("")
      }),
  }
}
