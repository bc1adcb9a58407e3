/**
 * Indicators: the input of a metric's z-score. A level is the observation itself, a yoy its growth
 * over a year.
 *
 * Source: document 3 §2 A indicator_kind; market facts, A2.2.
 */
import { yearBefore } from "#schemas/capital-pressure/day.ts"
import type { Cadence, Metric } from "#schemas/capital-pressure/metric.ts"
import type { Series } from "./store.ts"

/** Maximum number of days between two consecutive observations if none is missing. */
const period_days = { daily: 1, weekly: 7, monthly: 31, quarterly: 92 } as const

/** Maximum extra age, beyond one period, of the comparison value from a year before. */
const comparison_slack_days = 10

/**
 * The indicator of each observation that has one: the value of a level, or for a yoy the growth in
 * percent since the newest value at or before the same date a year earlier. No growth if that value
 * is not positive, or was older than a period and ten days by then.
 */
export const indicatorOf = (
  { indicator_kind, cadence }: Pick<Metric, "indicator_kind" | "cadence">,
  series: Series,
): Series => (indicator_kind === "level" ? series : growthOf(cadence, series))

const growthOf = (cadence: Cadence, { days, values }: Series): Series => {
  const age_max = period_days[cadence] + comparison_slack_days
  const found = { days: new Int32Array(days.length), values: new Float64Array(days.length) }
  let count = 0
  let before = -1
  for (const [index, day] of days.entries()) {
    const year_before = yearBefore(day)
    while ((days[before + 1] ?? Number.POSITIVE_INFINITY) <= year_before) before++
    const age = year_before - (days[before] ?? Number.NEGATIVE_INFINITY)
    const base = values[before] ?? 0
    const growth = ((values[index] ?? Number.NaN) / base - 1) * 100
    if (age > age_max || base <= 0 || !Number.isFinite(growth)) continue
    found.days[count] = day
    found.values[count] = growth
    count++
  }
  return { days: found.days.subarray(0, count), values: found.values.subarray(0, count) }
}
