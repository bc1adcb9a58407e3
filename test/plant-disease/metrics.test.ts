/** Metrics of predictions. Source: DECISIONS, "health". */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { predictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { png, predicting } from "./predicting.ts"

describe("the metrics of predictions", () => {
  it("count outcomes, times, and the images of each run", async () => {
    const metrics = predictionMetrics()
    metrics.count("predicted")
    metrics.count("predicted")
    metrics.count("Busy")
    metrics.took(4)
    metrics.took(30)
    metrics.took(60_000)
    const images = 6
    const text = await Effect.runPromise(
      predicting((predictor) =>
        Effect.gen(function* () {
          const all = Array.from({ length: images }, () => predictor.predict(png("red")))
          yield* Effect.all(all, { concurrency: "unbounded" })
          return yield* metrics.text(predictor)
        }),
      ),
    )
    const lines = text.trim().split("\n")
    const name = "almanac_plant"
    expect(lines).toEqual(
      expect.arrayContaining([
        `${name}_predictions_total{outcome="predicted"} 2`,
        `${name}_predictions_total{outcome="Busy"} 1`,
        `${name}_predictions_total{outcome="InferenceFailed"} 0`,
        `${name}_prediction_seconds_bucket{le="0.005"} 1`,
        `${name}_prediction_seconds_bucket{le="0.05"} 2`,
        `${name}_prediction_seconds_bucket{le="2.5"} 2`,
        `${name}_prediction_seconds_bucket{le="+Inf"} 3`,
        `${name}_prediction_seconds_sum 60.034`,
        `${name}_prediction_seconds_count 3`,
        `${name}_waiting 0`,
        `${name}_running 0`,
        `${name}_batch_size_sum ${images}`,
      ]),
    )
    const runs = Number(/^almanac_plant_batch_size_count (\d+)$/m.exec(text)?.[1])
    expect(runs).toBeGreaterThanOrEqual(1)
    expect(runs).toBeLessThanOrEqual(images)
    expect(lines).toContain(`${name}_batch_size_bucket{le="8"} ${runs}`)
    expect(lines).toContain(`${name}_batch_size_bucket{le="+Inf"} ${runs}`)
    // Each metric has its help and type before its values, as Prometheus requires.
    for (const line of lines.filter((one) => !one.startsWith("#"))) {
      const [of = ""] = /^[a-z_]+?(?=_bucket|_sum|_count|\{| )/.exec(line) ?? []
      expect(text).toContain(`# TYPE ${of} `)
    }
  })
})
