/**
 * One metric in full: its description, its reading, and all its values.
 *
 * Source: document 3 §2 A HistoryOut, MetricDetailOut.
 */
import type { MetricDetail, MetricHistory } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { roundedFraction, roundedZ } from "./formatting.ts"
import { lastIndexUntil } from "./point-in-time.ts"
import { readingOf } from "./reading.ts"
import { scoreOf } from "./score.ts"
import type { Series, Store } from "./store.ts"

const no_observations: Series = { days: new Int32Array(), values: new Float64Array() }

/** A stub has no reading and an empty series, regardless of the store. */
const observedOf = ({ observations }: Store, { metric_id, stub }: Metric): Series =>
  (stub === null ? observations.get(metric_id) : undefined) ?? no_observations

/** The reading is of `today` (days since 1970-01-01); the series extends to the newest value. */
export const detailOf = (store: Store, metric: Metric, today: number): MetricDetail => {
  const observed = observedOf(store, metric)
  const score = scoreOf(metric, observed)
  const demo = store.feeds.get(metric.metric_id)?.demo ?? false
  const { metric_id, name, tier, source, source_kind, source_series, unit } = metric
  const { direction_kind, indicator_kind, indicator_window, indicator_lag } = metric
  const { description, publication_lag, zscore_years, include_in_composite } = metric
  return {
    metric_id,
    name,
    tier,
    source,
    source_kind,
    source_series,
    unit,
    cadence: metric.cadence_label,
    description,
    direction_kind,
    indicator_kind,
    indicator_window,
    indicator_lag,
    publication_lag,
    zscore_years,
    include_in_composite,
    reading: readingOf(score, today, demo) ?? null,
    series: Array.from(score.days, (day, index) => ({
      ts: dateOf(day),
      indicator: roundedFraction(score.indicator[index] ?? Number.NaN),
      z: roundedZ(score.z[index] ?? Number.NaN),
    })),
    obs_count: observed.days.length,
  }
}

/** The stored values since `since` (days since 1970-01-01), oldest first. */
export const historyOf = (store: Store, metric: Metric, since?: number): MetricHistory => {
  const { days, values } = observedOf(store, metric)
  const first = since === undefined ? 0 : lastIndexUntil(days, since - 1) + 1
  return {
    metric_id: metric.metric_id,
    points: Array.from(days.subarray(first), (day, offset) => ({
      ts: dateOf(day),
      value: values[first + offset] ?? Number.NaN,
    })),
  }
}
