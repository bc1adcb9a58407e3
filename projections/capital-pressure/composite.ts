/**
 * The composite: one number for a day's pressure, the mean of its tiers' means.
 *
 * Source: document 3 §2 A CompositeOut; decisions of document 3; market facts, A2.3.
 */
import { isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { carry_days_max } from "./point-in-time.ts"
import { pressureOf, type Score, scoresOf } from "./score.ts"
import type { CompositeSeries, Store } from "./store.ts"

/**
 * The composite of each business day in `from_day`..`to_day` (inclusive) that has one, from the
 * data known on that day. `onProgress` receives the number of metrics done and the total.
 */
export const compositeHistory = (
  observations: Store["observations"],
  from_day: number,
  to_day: number,
  onProgress?: (done: number, total: number) => void,
): CompositeSeries => {
  const length = Math.max(0, to_day - from_day + 1)
  const days = Int32Array.from({ length }, (_, index) => from_day + index).filter(isBusinessDay)
  return withComposite(compositeOf(scoresOf(observations), days, onProgress))
}

/** The composite of each of these ascending days; NaN if no metric counts. Gauges never count. */
export const compositeOf = (
  scores: ReadonlyArray<Score>,
  days: Int32Array,
  onProgress?: (done: number, total: number) => void,
): CompositeSeries => {
  const voting = scores.filter(({ metric }) => metric.include_in_composite)
  const sums = fourOf(() => new Float64Array(days.length))
  const counts = fourOf(() => new Float64Array(days.length))
  for (const [index, score] of voting.entries()) {
    const tier = score.metric.tier - 1
    const [sum, count] = [sums[tier], counts[tier]]
    if (sum && count) addPressure(score, days, sum, count)
    onProgress?.(index + 1, voting.length)
  }
  const tiers = fourOf((tier) => ratios(sums[tier], counts[tier]))
  return { days, z: meansOf(tiers, days.length), tiers }
}

const fourOf = <A>(make: (tier: 0 | 1 | 2 | 3) => A): [A, A, A, A] => [
  make(0),
  make(1),
  make(2),
  make(3),
]

/** Adds a metric's pressure to the days on which its z-score is recent enough. */
const addPressure = (score: Score, days: Int32Array, sum: Float64Array, count: Float64Array) => {
  const { metric, available } = score
  const age_max = carry_days_max[metric.cadence]
  const none = Number.POSITIVE_INFINITY
  let known = -1
  for (let index = 0; index < days.length; index++) {
    const day = days[index] ?? Number.NaN
    while ((available[known + 1] ?? none) <= day) known++
    const pressure = pressureOf(metric, score.z[known] ?? Number.NaN)
    if (Number.isNaN(pressure) || day - (score.days[known] ?? Number.NaN) > age_max) continue
    sum[index] = (sum[index] ?? 0) + pressure
    count[index] = (count[index] ?? 0) + 1
  }
}

/** Each sum divided by its count; NaN if the count is 0. */
const ratios = (sums: Float64Array, counts: Float64Array) =>
  sums.map((sum, index) => sum / (counts[index] ?? 0))

/** For each day, the mean of the tiers with data. */
const meansOf = (tiers: CompositeSeries["tiers"], length: number) =>
  Float64Array.from({ length }, (_, index) => {
    let sum = 0
    let count = 0
    for (const tier of tiers) {
      const average = tier[index] ?? Number.NaN
      if (Number.isNaN(average)) continue
      sum += average
      count++
    }
    return sum / count
  })

/** Removes days without a composite. */
const withComposite = ({ days, z, tiers }: CompositeSeries): CompositeSeries => {
  const isThere = (_: number, index: number) => !Number.isNaN(z[index])
  return {
    days: days.filter(isThere),
    z: z.filter(isThere),
    tiers: fourOf((tier) => tiers[tier].filter(isThere)),
  }
}
