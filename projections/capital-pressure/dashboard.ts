/**
 * The dashboard: the composite, its history and four tier cards.
 *
 * Source: document 3 §2 A DashboardOut; market facts, A2.3 and A2.6.
 */
import type {
  Composite,
  CompositePoint,
  Dashboard,
  Reading,
} from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import { index_ticker } from "#schemas/capital-pressure/price.ts"
import { tiers } from "#schemas/capital-pressure/tier.ts"
import { compositeOf } from "./composite.ts"
import { labelOf, roundedZ } from "./formatting.ts"
import { lastIndexUntil } from "./point-in-time.ts"
import { readingOf } from "./reading.ts"
import { scoresOf } from "./score.ts"
import type { PriceSeries, Store } from "./store.ts"
import { tierCardsOf, tierColumn } from "./tier.ts"

/** Business days per year. Source: document 3 §8 A. */
const history_points_max = 252

/** Content of the first page as of this day (days since 1970-01-01). */
export const dashboardOf = (store: Store, today: number): Dashboard => {
  const scores = scoresOf(store.observations)
  const live = compositeOf(scores, Int32Array.of(today))
  const readings = scores.flatMap((score) => {
    const demo = store.feeds.get(score.metric.metric_id)?.demo ?? false
    return readingOf(score, today, demo) ?? []
  })
  return {
    composite: compositeCard(readings, live.z[0] ?? Number.NaN),
    tiers: tierCardsOf(readings, live),
    composite_history: historyPoints(store),
    demo: [...store.feeds.values()].some(({ demo }) => demo),
  }
}

/** Counts votes of eligible metrics only: neither gauges nor stale ones. */
const compositeCard = (readings: ReadonlyArray<Reading>, pressure: number): Composite | null => {
  const z = roundedZ(pressure)
  if (z === null) return null
  const { label, class: sign_class } = labelOf("composite", pressure)
  const voting = readings.filter(
    ({ include_in_composite, stale }) => include_in_composite && !stale,
  )
  const tally = { bull: 0, neutral: 0, bear: 0 }
  for (const { vote } of voting) tally[vote.direction]++
  return { z, z_label: label, sign_class, tally, metrics_total: voting.length }
}

const historyPoints = ({ composite, prices }: Store): ReadonlyArray<CompositePoint> => {
  const index_prices = prices.get(index_ticker)
  const first = Math.max(0, composite.days.length - history_points_max)
  return Array.from(composite.days.subarray(first), (day, offset) => {
    const index = first + offset
    return {
      ts: dateOf(day),
      z: roundedZ(composite.z[index] ?? Number.NaN) ?? 0,
      index_close: closeOn(index_prices, day),
      tier_zs: Object.fromEntries(
        tiers.flatMap(({ tier }) => {
          const z = roundedZ(tierColumn(composite, tier)[index] ?? Number.NaN)
          return z === null ? [] : [[tier, z]]
        }),
      ),
    }
  })
}

/** Null on a day without trade. */
const closeOn = (prices: PriceSeries | undefined, day: number): number | null => {
  if (prices === undefined) return null
  const index = lastIndexUntil(prices.days, day)
  return prices.days[index] === day ? (prices.close[index] ?? null) : null
}
