/** The dashboard's calculations, implemented slowly: value by value, as the rules state them. */
import type { Series, Store } from "#projections/capital-pressure/store.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"

export interface Point {
  readonly day: number
  readonly value: number
}

export const pointsOf = ({ days, values }: Series): ReadonlyArray<Point> =>
  Array.from(days, (day, index) => ({ day, value: values[index] ?? Number.NaN }))

/** Works on the text of the date. */
export const naiveYearsBefore = (day: number, years: number): number => {
  const [year, rest] = [dateOf(day).slice(0, 4), dateOf(day).slice(4)]
  const before = `${String(Number(year) - years).padStart(4, "0")}${rest}`
  const found = dayOf(before)
  const is_there = !Number.isNaN(found) && dateOf(found) === before
  return is_there ? found : dayOf(before.replace("-02-29", "-02-28"))
}

const newestUntil = (points: ReadonlyArray<Point>, day: number) =>
  points.filter((one) => one.day <= day).at(-1)

const age_max = { daily: 11, weekly: 17, monthly: 41, quarterly: 102 }

export const naiveIndicator = (metric: Metric, series: Series): ReadonlyArray<Point> => {
  const points = pointsOf(series)
  if (metric.indicator_kind === "level") return points
  return points.flatMap(({ day, value }) => {
    const start = naiveYearsBefore(day, 1)
    const base = newestUntil(points, start)
    if (base === undefined || start - base.day > age_max[metric.cadence]) return []
    return base.value > 0 ? [{ day, value: (value / base.value - 1) * 100 }] : []
  })
}

const mean = (values: ReadonlyArray<number>) =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const tolerance = { daily: 7, weekly: 10, monthly: 45, quarterly: 120 }

/** null if the window is not full, has too few values, or all values are equal. */
export const naiveZ = (metric: Metric, points: ReadonlyArray<Point>, at: Point): number | null => {
  const start = naiveYearsBefore(at.day, metric.zscore_years)
  const years = metric.zscore_years
  const count_min = { daily: 150 * years, weekly: 40 * years, monthly: 10 * years, quarterly: 10 }
  const inside = points.filter(({ day }) => day > start && day <= at.day).map(({ value }) => value)
  const first = points[0]?.day ?? Number.POSITIVE_INFINITY
  if (first > start + tolerance[metric.cadence]) return null
  if (inside.length < count_min[metric.cadence]) return null
  const centre = mean(inside)
  const squares = inside.map((value) => (value - centre) ** 2)
  const deviation = Math.sqrt(squares.reduce((sum, one) => sum + one, 0) / (inside.length - 1))
  if (deviation <= 1e-12 * Math.max(1, Math.abs(centre))) return null
  return (at.value - centre) / deviation
}

/** Moves Saturday and Sunday to Monday. */
const published = (day: number) => {
  const weekday = new Date(day * 86_400_000).getUTCDay()
  return day + (weekday === 6 ? 2 : weekday === 0 ? 1 : 0)
}

const carry = { daily: 10, weekly: 21, monthly: 95, quarterly: 290 }

const naivePressure = (metric: Metric, series: Series, today: number): number | null => {
  const points = naiveIndicator(metric, series)
  const known = points.filter(({ day }) => published(day + metric.publication_lag) <= today).at(-1)
  if (known === undefined || today - known.day > carry[metric.cadence]) return null
  const z = naiveZ(metric, points, known)
  if (z === null) return null
  return metric.direction_kind === "higher_bearish" ? z : -z
}

/** The means of the four tiers on a day, and the mean of those that exist. */
export const naiveComposite = (observations: Store["observations"], today: number) => {
  const tiers = [1, 2, 3, 4].map((tier) => {
    const all = metrics
      .filter((metric) => metric.tier === tier && metric.include_in_composite)
      .flatMap((metric) => {
        const series = observations.get(metric.metric_id)
        return series === undefined ? [] : (naivePressure(metric, series, today) ?? [])
      })
    return all.length === 0 ? null : mean(all)
  })
  const there = tiers.filter((one) => one !== null)
  return { z: there.length === 0 ? null : mean(there), tiers }
}
