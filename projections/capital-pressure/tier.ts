/**
 * Tiers: the mean pressure of each, today and over time.
 *
 * Source: document 3 §2 A TierOut, TierHistoryOut.
 */
import type { Reading, TierCard, TierHistory } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import type { Tier } from "#schemas/capital-pressure/metric.ts"
import { type TierName, tiers } from "#schemas/capital-pressure/tier.ts"
import { roundedZ } from "./formatting.ts"
import type { CompositeSeries, Store } from "./store.ts"

/** The tier's column of a composite; NaN on a day without data. */
export const tierColumn = ({ tiers: columns }: CompositeSeries, tier: Tier): Float64Array => {
  const index = { 1: 0, 2: 1, 3: 2, 4: 3 } as const
  return columns[index[tier]]
}

/** The four cards; `live` is the composite of the readings' day. */
export const tierCardsOf = (
  readings: ReadonlyArray<Reading>,
  live: CompositeSeries,
): ReadonlyArray<TierCard> =>
  tiers.map(({ tier, name, tag, cadence }) => ({
    tier,
    name,
    tag,
    cadence,
    avg_z: roundedZ(tierColumn(live, tier)[0] ?? Number.NaN),
    metrics: readings.filter((reading) => reading.tier === tier),
  }))

const nameOf = (tier: Tier): TierName => {
  const found = tiers.find((one) => one.tier === tier)
  if (found === undefined) throw new Error(`tier ${tier} has no name`)
  return found
}

/** The days computed by `backfill-composite`; empty before its first run. */
export const tierHistoryOf = ({ composite }: Store, tier: Tier): TierHistory => {
  const { name, tag } = nameOf(tier)
  const column = tierColumn(composite, tier)
  const points = Array.from(composite.days, (day, index) => ({
    ts: dateOf(day),
    z: roundedZ(column[index] ?? Number.NaN),
  })).flatMap(({ ts, z }) => (z === null ? [] : [{ ts, z }]))
  return { tier, name, tag, points, latest_z: points.at(-1)?.z ?? null }
}
