/**
 * What is measured of predictions, as Prometheus text: outcomes, times, what waits, and how many
 * images the network sees at once. Source: DECISIONS, "health".
 */
import { Effect } from "effect"
import type { PredictFailure, Predictor } from "#actors/plant-disease/predictor.ts"
import { familyText, histogramText, plainText } from "#schemas/metric.ts"

export type Outcome = "predicted" | PredictFailure["_tag"]

/** Every outcome is told from the start, so that a rate can be made of the first. */
const outcomes: ReadonlyArray<Outcome> = [
  "predicted",
  "WrongType",
  "Undecodable",
  "TooLarge",
  "Busy",
  "InferenceFailed",
]

/** From a small network on an idle machine to a photo of 50 megapixels, in seconds. */
const bounds_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export interface PredictionMetrics {
  readonly count: (outcome: Outcome) => void
  /** From the moment a thread had the image until its answer. */
  readonly took: (milliseconds: number) => void
  readonly text: (predictor: Predictor["Service"]) => Effect.Effect<string>
}

/** Images by run of the network; the bounds are powers of two up to the largest batch. */
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
  help: "Images that one run of the network had.",
} as const
const predictions = {
  name: "almanac_plant_predictions_total",
  type: "counter",
  help: "Images, by how they ended.",
} as const
const duration = {
  name: "almanac_plant_prediction_seconds",
  type: "histogram",
  help: "From the moment a thread had an image until its answer.",
} as const

export const predictionMetrics = (): PredictionMetrics => {
  const counts = new Map<Outcome, number>(outcomes.map((outcome) => [outcome, 0]))
  const buckets = new Array<number>(bounds_s.length + 1).fill(0)
  let sum_s = 0

  return {
    count: (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1),
    took: (milliseconds) => {
      const seconds = milliseconds / 1000
      const place = bounds_s.findIndex((bound) => seconds <= bound)
      const bucket = place === -1 ? bounds_s.length : place
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
      sum_s += seconds
    },
    text: ({ load, batches }) =>
      Effect.gen(function* () {
        const { waiting, running } = yield* load
        const ended = [...counts].map(([outcome, count]) => [count, { outcome }] as const)
        return [
          familyText(predictions, ended),
          histogramText(duration, bounds_s, [{ counts: buckets, sum: sum_s }]),
          plainText("almanac_plant_", [
            ["gauge", "waiting", "Images that no thread has yet.", waiting],
            ["gauge", "running", "Images that threads have.", running],
          ]),
          batchText(yield* batches),
        ].join("")
      }),
  }
}
