/** Scores: a metric's indicator with its z-scores, and from when on each was known. */
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { indicatorOf } from "./indicator.ts"
import { availableDays } from "./point-in-time.ts"
import type { Series, Store } from "./store.ts"
import { zScores } from "./zscore.ts"

export interface Score {
  readonly metric: Metric
  /** Dates of the observations that have an indicator, ascending; the rest is in their order. */
  readonly days: Int32Array
  readonly indicator: Float64Array
  /** Plain, not turned by direction; NaN where there is none. */
  readonly z: Float64Array
  /** The business day from which each counts. */
  readonly available: Int32Array
}

/** Every value of it is the same when later observations are taken away. */
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

/** The metrics with a feed that have an indicator, in the registry's order. */
export const scoresOf = (observations: Store["observations"]): ReadonlyArray<Score> =>
  metrics.flatMap((metric) => {
    const observed = observations.get(metric.metric_id)
    if (metric.stub !== null || observed === undefined) return []
    const score = scoreOf(metric, observed)
    return score.days.length === 0 ? [] : [score]
  })

/** A z-score turned by direction: positive is pressure. Source: document 3, directional z. */
export const pressureOf = ({ direction_kind }: Metric, z: number): number =>
  direction_kind === "higher_bearish" ? z : -z
