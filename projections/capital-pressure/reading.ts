/**
 * Readings: the display values of a metric on a day.
 *
 * Source: document 3 §2 A ReadingOut; market facts, A2.4 and A2.5.
 */
import type { Reading } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import { deltaOf, type Label, labelOf, roundedFraction, roundedZ, valueText } from "./formatting.ts"
import { isStale, lastIndexUntil } from "./point-in-time.ts"
import { pressureOf, type Score } from "./score.ts"
import { voteOf } from "./vote.ts"

/** Number of values in a sparkline: a quarter, a year, three years and five years. */
const sparkline_points = { daily: 60, weekly: 52, monthly: 36, quarterly: 20 } as const

const unscored: Label = { label: "n/a", class: "neutral" }

/**
 * The newest value known on this day, of any age: a stale value is displayed but never counts.
 * Undefined before the first value. `demo`: the values were generated.
 */
export const readingOf = (score: Score, day: number, demo: boolean): Reading | undefined => {
  const { metric, days, indicator } = score
  const index = lastIndexUntil(score.available, day)
  const [observed, value] = [days[index], indicator[index]]
  if (observed === undefined || value === undefined) return undefined
  const z = score.z[index] ?? Number.NaN
  const { label, class: z_class } = Number.isNaN(z)
    ? unscored
    : labelOf("metric", pressureOf(metric, z))
  const { metric_id, name, tier, source, unit, include_in_composite, cadence } = metric
  const stale = isStale(cadence, observed, day)
  const first_of_sparkline = Math.max(0, index + 1 - sparkline_points[cadence])
  return {
    metric_id,
    name,
    tier,
    source,
    unit,
    value: valueText(metric.format, value),
    ...deltaOf(metric, value - (indicator[index - 1] ?? Number.NaN)),
    z: roundedZ(z),
    z_label: label,
    z_class,
    as_of: dateOf(observed),
    sparkline: Array.from(indicator.subarray(first_of_sparkline, index + 1), roundedFraction),
    vote: voteOf(metric, value, z),
    include_in_composite,
    description: stale ? `${metric.description} ${ageText(day - observed)}` : metric.description,
    stale,
    demo,
  }
}

const ageText = (days: number) =>
  `This value is ${days} days old: it is ignored until a newer one arrives.`
