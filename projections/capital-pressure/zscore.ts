/**
 * Rolling z-scores: distance of an indicator from its recent past.
 *
 * Source: document 3 §2 A; decisions of document 3, rolling z; market facts, A2.2.
 */
import { yearsBefore } from "#schemas/capital-pressure/day.ts"
import type { Cadence, Metric } from "#schemas/capital-pressure/metric.ts"
import type { Series } from "./store.ts"

/** Maximum delay, in days, of the first observation in a window that counts as filled. */
const fill_tolerance_days = { daily: 7, weekly: 10, monthly: 45, quarterly: 120 } as const

/** A deviation below this fraction of the mean is the rounding error of a constant. */
const deviation_ratio_min = 1e-12

/** Running sums are recomputed after this many steps, */
const steps_max = 512
/**
 * and when they have held this many times what remains: together this keeps ten digits of the
 * deviation, even after an outlier or a trend.
 */
const cancellation_max = 256

/** Minimum number of observations in a window for a z-score. */
export const observationsMin = (cadence: Cadence, years: number): number => {
  const of_year = { daily: 150, weekly: 40, monthly: 10 }
  return cadence === "quarterly" ? 10 : of_year[cadence] * years
}

/**
 * The z-score of each value among the values of (day - zscore_years, day], itself included, by the
 * sample standard deviation (ddof 1). NaN if the series does not reach back that far, the window
 * holds too few values, or they are all equal. A value never depends on later ones.
 */
export const zScores = (
  { cadence, zscore_years }: Pick<Metric, "cadence" | "zscore_years">,
  { days, values }: Series,
): Float64Array => {
  const z = new Float64Array(days.length).fill(Number.NaN)
  const count_min = observationsMin(cadence, zscore_years)
  const tolerance = fill_tolerance_days[cadence]
  const window = newWindow()
  let from = 0
  for (let index = 0; index < days.length; index++) {
    const value = values[index] ?? Number.NaN
    const window_start = yearsBefore(days[index] ?? Number.NaN, zscore_years)
    add(window, value)
    for (; (days[from] ?? Number.NaN) <= window_start; from++) {
      remove(window, values[from] ?? Number.NaN)
    }
    if (!isExact(window)) recount(window, values, from, index + 1)
    const is_filled = (days[0] ?? Number.NaN) <= window_start + tolerance
    if (is_filled && window.count >= count_min) z[index] = scoreOf(window, value)
  }
  return z
}

/** Sums of the differences from a center near the mean, and of their squares. */
interface Window {
  count: number
  centre: number
  sum: number
  squares: number
  /** Maximum of `squares` since the sums were computed. */
  peak: number
  steps: number
}

const newWindow = (): Window => ({ count: 0, centre: 0, sum: 0, squares: 0, peak: 0, steps: 0 })

const add = (window: Window, value: number) => {
  const difference = value - window.centre
  window.count++
  window.sum += difference
  window.squares += difference * difference
  window.peak = Math.max(window.peak, window.squares)
  window.steps++
}

const remove = (window: Window, value: number) => {
  const difference = value - window.centre
  window.count--
  window.sum -= difference
  window.squares -= difference * difference
}

/** Sum of squared differences from the mean. */
const spreadOf = ({ count, sum, squares }: Window) => squares - (sum * sum) / count

const isExact = (window: Window) =>
  window.steps < steps_max && spreadOf(window) * cancellation_max >= window.peak

const recount = (window: Window, values: Float64Array, from: number, to: number) => {
  let total = 0
  for (let index = from; index < to; index++) total += values[index] ?? Number.NaN
  window.centre = total / window.count
  window.sum = 0
  window.squares = 0
  for (let index = from; index < to; index++) {
    const difference = (values[index] ?? Number.NaN) - window.centre
    window.sum += difference
    window.squares += difference * difference
  }
  window.peak = window.squares
  window.steps = 0
}

const scoreOf = (window: Window, value: number) => {
  const mean = window.centre + window.sum / window.count
  const deviation = Math.sqrt(Math.max(0, spreadOf(window)) / (window.count - 1))
  const is_constant = !(deviation > deviation_ratio_min * Math.max(1, Math.abs(mean)))
  return is_constant || !Number.isFinite(deviation) ? Number.NaN : (value - mean) / deviation
}
