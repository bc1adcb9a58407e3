import { assert, describe, it } from "@effect/vitest"
import { compositeHistory } from "#projections/capital-pressure/composite.ts"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { type Demo, demo_seed, demo_years, demoOf } from "#projections/capital-pressure/demo.ts"
import type { Store } from "#projections/capital-pressure/store.ts"
import {
  dateOf,
  dayOf,
  isBusinessDay,
  weekdayOf,
  yearsBefore,
} from "#schemas/capital-pressure/day.ts"
import { findMetric, metrics } from "#schemas/capital-pressure/registry.ts"

const today = dayOf("2026-11-22")
const live = metrics.filter(({ stub }) => stub === null)
const demo = demoOf(today)

const seriesOf = ({ observations }: Demo, id: string) => {
  const series = observations.get(id)
  if (series === undefined) throw new Error(`${id} is not generated`)
  return series
}

/** The generated data as a store, with the composite of the last year. */
const storeOf = ({ observations, prices, targets }: Demo, day: number): Store => ({
  observations,
  prices,
  targets,
  composite: compositeHistory(observations, day - 365, day),
  feeds: new Map(),
  jobs: new Map(),
})

/** The largest value of a metric between two dates. */
const highest = (id: string, from: string, to: string) => {
  const { days, values } = seriesOf(demo, id)
  const is_within = (_: number, at: number) => {
    const date = dateOf(days[at] ?? 0)
    return date >= from && date < to
  }
  return Math.max(...values.filter(is_within))
}

describe("the made-up history", () => {
  it("covers every metric that has a feed, every ticker, and each target", () => {
    assert.sameMembers(
      [...demo.observations.keys()],
      live.map(({ metric_id }) => metric_id),
    )
    assert.equal(demo.prices.size, 10)
    assert.equal(demo.targets.length, 8)
    assert.isTrue(demo.targets.every(({ target, set_on }) => target > 0 && set_on !== null))
  })

  it("is the same each time, and another of another seed", () => {
    assert.deepEqual(demoOf(today), demo)
    const other = demoOf(today, demo_seed + 1)
    for (const { metric_id } of live) {
      assert.notDeepEqual(seriesOf(other, metric_id).values, seriesOf(demo, metric_id).values)
    }
  })

  it("says of a day what it said before, whenever it is asked", () => {
    for (const later of [today + 1, today + 40, dayOf("2031-03-03")]) {
      const then = demoOf(later)
      for (const { metric_id } of live) {
        const before = seriesOf(demo, metric_id)
        const values = new Map(
          Array.from(seriesOf(then, metric_id).days, (day, at) => [
            day,
            seriesOf(then, metric_id).values[at],
          ]),
        )
        const from = yearsBefore(later, demo_years)
        for (const [at, day] of before.days.entries()) {
          if (day >= from) assert.equal(values.get(day), before.values[at], `${metric_id} ${day}`)
        }
      }
    }
  })

  it("contains only published values, dated as their publisher dates them", () => {
    for (const metric of live) {
      const { days, values } = seriesOf(demo, metric.metric_id)
      const [first = 0, last = 0] = [days[0], days.at(-1)]
      assert.isAtLeast(first, yearsBefore(today, demo_years))
      assert.isAtMost(first, yearsBefore(today, demo_years) + 92)
      assert.isAtMost(last + metric.publication_lag, today)
      assert.isTrue(days.every((day, at) => at === 0 || day > (days[at - 1] ?? day)))
      assert.isTrue(values.every(Number.isFinite), metric.metric_id)
      if (metric.cadence === "daily") assert.isTrue(days.every(isBusinessDay))
      if (metric.cadence === "monthly") assert.match(dateOf(last), /-01$/)
      if (metric.cadence === "quarterly") assert.match(dateOf(last), /-(01|04|07|10)-01$/)
    }
    const weekdayOfMetric = (id: string) => new Set([...seriesOf(demo, id).days].map(weekdayOf))
    assert.deepEqual([...weekdayOfMetric("net_liquidity")], [3])
    assert.deepEqual([...weekdayOfMetric("cot_am_spx")], [2])
    assert.deepEqual([...weekdayOfMetric("nfci")], [5])
    for (const { days, close } of demo.prices.values()) {
      assert.isBelow(days.at(-1) ?? today, today)
      assert.isTrue(close.every((price) => price > 1 && price < 20_000))
    }
  })

  it("stays where its publishers' values have been, and has their two crises", () => {
    const usual: ReadonlyArray<readonly [id: string, low: number, high: number]> = [
      ["hy_spread", 2, 23],
      ["baa_spread", 1, 6.5],
      ["nfci", -1.2, 3.5],
      ["yield_curve", -2.1, 4],
      ["ofr_fsi", -6, 31],
      ["vix_term", 0.65, 1.5],
      ["rates_vol", 25, 220],
      ["cot_am_spx", -20, 55],
      ["skew", 100, 180],
      ["margin_cushion", 15, 70],
      ["equity_gdp", 50, 260],
      ["hh_equity_share", 14, 55],
      ["net_issuance", -5.5, 3],
      ["erp_proxy", -2, 9],
      ["lending_standards", -30, 88],
      ["m2_growth", 5_000, 30_000],
      ["bank_credit", 5_000, 30_000],
      ["margin_debt", 80_000, 1_500_000],
      ["net_liquidity", 500_000, 9_000_000],
      ["treasury_supply", 3e12, 4e13],
    ]
    assert.equal(usual.length, live.length)
    for (const [id, low, high] of usual) {
      const { values } = seriesOf(demo, id)
      assert.isAtLeast(Math.min(...values), low, id)
      assert.isAtMost(Math.max(...values), high, id)
    }
    const quiet = highest("hy_spread", "2013-01-01", "2015-06-01")
    assert.isAbove(highest("hy_spread", "2008-07-01", "2009-07-01"), 2 * quiet)
    assert.isAbove(highest("hy_spread", "2020-02-15", "2020-06-01"), 1.5 * quiet)
    assert.isAbove(highest("lending_standards", "2008-07-01", "2009-07-01"), 40)
  })

  it("has about half of the votes say something, on most days of ten years", () => {
    const shares: Array<number> = []
    for (let day = dayOf("2016-01-15"); day < today; day += 211) {
      const known = demoOf(day)
      const { composite, tiers } = dashboardOf(storeOf(known, day), day)
      if (composite === null) throw new Error(`no composite on ${dateOf(day)}`)
      const { bull, neutral, bear } = composite.tally
      assert.equal(bull + neutral + bear, live.filter((one) => one.include_in_composite).length)
      assert.isTrue(tiers.every(({ metrics }) => metrics.every(({ stale }) => !stale)))
      shares.push((bull + bear) / (bull + neutral + bear))
    }
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
    assert.isAbove(mean, 0.45)
    assert.isBelow(mean, 0.85)
    assert.isAbove(Math.min(...shares), 0.2)
  })

  it("grows with the year what is stored as a level", () => {
    for (const id of ["m2_growth", "bank_credit", "treasury_supply"]) {
      assert.equal(findMetric(id)?.indicator_kind, "yoy")
      const { values } = seriesOf(demo, id)
      assert.isAbove((values.at(-1) ?? 0) / (values[0] ?? 1), 1.5)
    }
  })
})
