/** Scores: a metric's indicator and z-scores, with the day each became known. */
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { indicatorOf } from "./indicator.ts"
import { availableDays } from "./point-in-time.ts"
import type { Series, Store } from "./store.ts"
import { zScores } from "./zscore.ts"

export interface Score {
  readonly metric: Metric
  /** Dates of observations with an indicator, ascending; the other arrays are in the same order. */
  readonly days: Int32Array
  readonly indicator: Float64Array
  /** Not adjusted for direction; NaN if missing. */
  readonly z: Float64Array
  /** The business day from which each value counts. */
  readonly available: Int32Array
}

/** Each value depends on earlier observations only. */
export const scoreOf = (metric: Metric, observed: Series): Score => {
  const indicator = indicatorOf(metric, observed)
  return {
    metric,
    days: indicator.days,
    indicator: indicator.values,
    z: zScores(metric, indicator),
    available: availableDays(indicator.days, metric.publication_lag),
  }
}

/** Metrics with a feed and an indicator, in the registry's order. */
export const scoresOf = (observations: Store["observations"]): ReadonlyArray<Score> =>
  metrics.flatMap((metric) => {
    const observed = observations.get(metric.metric_id)
    if (metric.stub !== null || observed === undefined) return []
    const score = scoreOf(metric, observed)
    return score.days.length === 0 ? [] : [score]
  })

/** A z-score adjusted for direction: positive means pressure. Source: document 3, directional z. */
export const pressureOf = ({ direction_kind }: Metric, z: number): number =>
  direction_kind === "higher_bearish" ? z : -z
