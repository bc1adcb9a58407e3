import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import type { CompositeSeries } from "#projections/capital-pressure/store.ts"
import { Dashboard } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf, dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { every, pricesOf, seriesOf, storeOf } from "../../world/capital-pressure/store.ts"
import {
  syntheticStore,
  synthetic_last_day as today,
} from "../../world/capital-pressure/synthetic-store.ts"

const store = syntheticStore(1)
const full = dashboardOf(store, today)

/** `count` composite days from a date on, weekends included; the fourth tier has no values. */
const compositeOf = (count: number, from: string): CompositeSeries => {
  const { days, values } = every(
    1,
    from,
    Array.from({ length: count }, (_, index) => index / 8),
  )
  const none = new Float64Array(count).fill(Number.NaN)
  return { days, z: values, tiers: [values, values.map((one) => -one), none, none] }
}

describe("the dashboard", () => {
  it("without data has four empty tiers, and no composite", () => {
    expect(dashboardOf(storeOf(), today)).toEqual({
      composite: null,
      tiers: [
        ["Liquidity and Credit", "PRICE OF MONEY", "daily / weekly"],
        ["Positioning and Sentiment", "CROWD", "daily / weekly"],
        ["Flows, Leverage and Issuance", "FLOW", "daily / weekly / monthly"],
        ["Valuation and Structure", "STRUCTURE", "quarterly"],
      ].map(([name, tag, cadence], index) => ({
        tier: index + 1,
        name,
        tag,
        cadence,
        avg_z: null,
        metrics: [],
      })),
      composite_history: [],
      demo: false,
    })
  })

  it("of a full store shows the 20 metrics that have a feed, in the registry's order", () => {
    const visible = full.tiers.map((tier) => tier.metrics.map(({ metric_id }) => metric_id))
    const live = metrics.filter(({ stub }) => stub === null)
    expect(visible).toEqual(
      [1, 2, 3, 4].map((tier) =>
        live.filter((metric) => metric.tier === tier).map(({ metric_id }) => metric_id),
      ),
    )
    expect(visible.flat()).toHaveLength(20)
    expect(full.composite_history).toHaveLength(252)
  })

  it("is as the API describes it", () => {
    expect(Schema.decodeUnknownSync(Dashboard)(full)).toEqual(full)
  })

  it("never shows a stub, even if values of it are stored", () => {
    const observations = new Map([["put_call", every(1, "2024-01-01", [1, 2, 3])]])
    const { tiers } = dashboardOf(storeOf({ observations }), today)
    expect(tiers.flatMap((tier) => tier.metrics)).toEqual([])
  })

  it("has no composite while no metric has a z-score", () => {
    const observations = new Map([["hy_spread", seriesOf([["2026-11-19", 7]])]])
    const { composite, tiers } = dashboardOf(storeOf({ observations }), today)
    expect(composite).toBeNull()
    expect(tiers[0]?.metrics.map(({ value }) => value)).toEqual(["7.00%"])
    expect(tiers[0]?.avg_z).toBeNull()
  })

  it("says that some of it is generated", () => {
    expect(full.demo).toBe(false)
    const row = { last_ingested_at: null, last_error_at: null, last_error: null }
    const feeds = new Map(store.feeds).set("nfci", { ...row, demo: true })
    const marked = dashboardOf({ ...store, feeds }, today)
    expect(marked.demo).toBe(true)
    const of_demo = marked.tiers.flatMap((tier) => tier.metrics.filter(({ demo }) => demo))
    expect(of_demo.map(({ metric_id }) => metric_id)).toEqual(["nfci"])
    const prices = new Map(store.feeds).set("prices", { ...row, demo: true })
    expect(dashboardOf({ ...store, feeds: prices }, today).demo).toBe(true)
  })
})

describe("the composite's card", () => {
  it("counts the votes of the sixteen that may vote", () => {
    const voting = full.tiers
      .flatMap((tier) => tier.metrics)
      .filter(({ include_in_composite }) => include_in_composite)
    expect(voting).toHaveLength(16)
    const count = (direction: string) =>
      voting.filter(({ vote }) => vote.direction === direction).length
    const tally = { bull: count("bull"), neutral: count("neutral"), bear: count("bear") }
    expect(full.composite).toMatchObject({ tally, metrics_total: 16 })
    expect(Object.values(tally).every((one) => one > 0)).toBe(true)
  })

  it("is the mean of the tiers that are shown, and labelled by itself", () => {
    const averages = full.tiers.map(({ avg_z }) => avg_z ?? 0)
    const mean = averages.reduce((sum, one) => sum + one, 0) / 4
    expect(full.composite?.z).toBeCloseTo(mean, 3)
    expect(full.composite).toMatchObject({ z: 0.28, z_label: "tightening", sign_class: "bear" })
  })

  it("leaves a stale metric out of the tally, the total and the averages, and shows it", () => {
    const days = store.observations.get("nfci")?.days ?? new Int32Array()
    const values = store.observations.get("nfci")?.values ?? new Float64Array()
    const old = { days: days.slice(0, -5), values: values.slice(0, -5) }
    const without = new Map(store.observations)
    without.delete("nfci")
    const found = dashboardOf({ ...store, observations: new Map(without).set("nfci", old) }, today)
    const absent = dashboardOf({ ...store, observations: without }, today)
    expect(found.composite).toEqual(absent.composite)
    expect(found.composite?.metrics_total).toBe(15)
    expect(found.tiers.map(({ avg_z }) => avg_z)).toEqual(absent.tiers.map(({ avg_z }) => avg_z))
    const visible = found.tiers[0]?.metrics.find(({ metric_id }) => metric_id === "nfci")
    expect(visible?.stale).toBe(true)
    expect(visible?.as_of).toBe(dateOf(days.at(-6) ?? 0))
  })

  it("of a weekend is of what was known on Friday", () => {
    expect(isBusinessDay(today + 1)).toBe(false)
    expect(dashboardOf(store, today + 1)).toEqual(full)
    expect(dashboardOf(store, today - 1)).not.toEqual(full)
  })
})

describe("the composite's history", () => {
  const points = (composite: CompositeSeries, closes: Parameters<typeof pricesOf>[0] = []) =>
    dashboardOf(storeOf({ composite, prices: new Map([["SP500", pricesOf(closes)]]) }), today)
      .composite_history

  it("is the last 252 days that were computed, oldest first", () => {
    const found = points(compositeOf(300, "2026-01-01"))
    expect(found).toHaveLength(252)
    expect(found[0]?.ts).toBe("2026-02-18")
    expect(found.at(-1)?.ts).toBe(dateOf(dayOf("2026-01-01") + 299))
    expect(points(compositeOf(3, "2026-01-01"))).toHaveLength(3)
  })

  it("has the index's close of that very day, and null on a day without", () => {
    const closes = [
      ["2026-01-02", 6900.5],
      ["2026-01-04", 6950],
    ] as const
    const found = points(compositeOf(4, "2026-01-01"), closes)
    expect(found.map(({ index_close }) => index_close)).toEqual([null, 6900.5, null, 6950])
    const without = dashboardOf(storeOf({ composite: compositeOf(1, "2026-01-01") }), today)
    expect(without.composite_history[0]?.index_close).toBeNull()
  })

  it("has no key for a tier without data", () => {
    const [, second] = points(compositeOf(2, "2026-01-01"))
    expect(second?.z).toBe(0.125)
    expect(second?.tier_zs).toEqual({ "1": 0.125, "2": -0.125 })
  })
})
