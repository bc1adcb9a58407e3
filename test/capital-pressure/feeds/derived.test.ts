import { assert, describe, it } from "@effect/vitest"
import { derivations } from "#adapters/capital-pressure/feeds/derived.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { datesOf } from "../../world/capital-pressure/publisher-answers.ts"

const series = (rows: Readonly<Record<string, number>>): Series => ({
  days: Int32Array.from(Object.keys(rows), dayOf),
  values: Float64Array.from(Object.values(rows)),
})

const combined = (metric_id: string, ...parts: ReadonlyArray<Readonly<Record<string, number>>>) => {
  const found = derivations.get(metric_id)?.combine(parts.map(series))
  assert.isDefined(found)
  return Object.fromEntries(
    Array.from(found?.days ?? [], (day, n) => [dateOf(day), found?.values[n]]),
  )
}

const near = (found: Readonly<Record<string, number | undefined>>, wanted: object) => {
  assert.deepEqual(Object.keys(found), Object.keys(wanted))
  for (const [date, value] of Object.entries(wanted)) {
    assert.closeTo(found[date] ?? Number.NaN, value, 1e-9, date)
  }
}

describe("a metric made of several series", () => {
  it("is each that says so", () => {
    const ids = metrics.filter(({ source_kind }) => source_kind === "fred_derived")
    assert.sameMembers(
      [...derivations.keys()],
      ids.map(({ metric_id }) => metric_id),
    )
    for (const { metric_id, source_series } of ids) {
      for (const input of derivations.get(metric_id)?.inputs ?? []) {
        assert.include(source_series, input)
      }
    }
  })

  it("net_liquidity is in USD millions of each Wednesday, by what was known of the others", () => {
    const assets = { "2024-01-03": 7_700_000, "2024-01-10": 7_600_000, "2024-01-17": 7_500_000 }
    const treasury = { "2024-01-03": 700_000, "2024-01-10": 750_000 }
    const repos = { "2024-01-02": 700, "2024-01-09": 600, "2024-01-11": 1 }
    near(combined("net_liquidity", assets, treasury, repos), {
      "2024-01-03": 7_700_000 - 700_000 - 700_000,
      "2024-01-10": 7_600_000 - 750_000 - 600_000,
      // The account value is a week old, the repo value six days.
      "2024-01-17": 7_500_000 - 750_000 - 1000,
    })
  })

  it("net_liquidity has no value where one of the others is too old, or not there", () => {
    const assets = { "2024-01-03": 1, "2024-02-07": 2 }
    assert.deepEqual(
      combined("net_liquidity", assets, { "2024-01-03": 1 }, { "2024-02-07": 1 }),
      {},
    )
    assert.deepEqual(
      combined("net_liquidity", assets, { "2024-02-07": 1 }, { "2024-01-27": 1 }),
      {},
    )
    near(combined("net_liquidity", assets, { "2024-01-17": 1 }, { "2024-01-28": 0 }), {
      "2024-02-07": 1,
    })
  })

  it("net_liquidity has no repos before the daily ones began", () => {
    const assets = { "2013-09-18": 3_700_000, "2013-09-25": 3_800_000 }
    const treasury = { "2013-09-18": 50_000, "2013-09-25": 60_000 }
    near(combined("net_liquidity", assets, treasury, {}), { "2013-09-18": 3_650_000 })
    near(combined("net_liquidity", assets, treasury, { "2013-09-25": 13 }), {
      "2013-09-18": 3_650_000,
      "2013-09-25": 3_740_000 - 13_000,
    })
  })

  it("vix_term is of days on which both closed", () => {
    const month = { "2024-01-02": 13, "2024-01-03": 14, "2024-01-05": 15 }
    const quarter = { "2024-01-02": 16, "2024-01-04": 17, "2024-01-05": 0 }
    near(combined("vix_term", month, quarter), { "2024-01-02": 13 / 16 })
  })

  it("rates_vol is the deviation of 21 changes, over a year, in basis points", () => {
    const dates = datesOf("daily").slice(0, 60)
    const yields = Object.fromEntries(
      dates.map((date, n) => [date, 4 + Math.sin(n * 1.7) / 5] as const),
    )
    const values = Object.values(yields)
    // The formula written out: each change, the mean, and the sample standard deviation.
    const wanted = dates.slice(21).map((date, k) => {
      const changes: Array<number> = []
      for (let n = k + 1; n <= k + 21; n += 1) changes.push((values[n] ?? 0) - (values[n - 1] ?? 0))
      let sum = 0
      for (const change of changes) sum += change
      let squares = 0
      for (const change of changes) squares += (change - sum / 21) * (change - sum / 21)
      return [date, Math.sqrt(squares / 20) * Math.sqrt(252) * 100] as const
    })
    near(combined("rates_vol", yields), Object.fromEntries(wanted))
  })

  it("rates_vol of changes that are all 3 bp, up and down, is their size over a year", () => {
    const dates = datesOf("daily").slice(0, 22)
    const yields = Object.fromEntries(
      dates.map((date, n) => [date, n % 2 === 0 ? 4 : 4.03] as const),
    )
    const [found = 0] = Object.values(combined("rates_vol", yields))
    // 11 up and 10 down: the mean is 1/21 of one.
    const deviation = Math.sqrt((21 * 9 - (3 * 3) / 21) / 20)
    assert.closeTo(found, deviation * Math.sqrt(252), 1e-9)
  })

  it("equity_gdp is in percent: millions over billions", () => {
    const equity = { "2024-01-01": 60_000_000, "2024-04-01": 61_000_000 }
    near(combined("equity_gdp", equity, { "2024-01-01": 30_000 }), { "2024-01-01": 200 })
  })

  it("net_issuance is the mean of four quarters, all of which exist", () => {
    const equity = { "2024-01-01": 50_000_000, "2024-04-01": 50_000_000, "2024-07-01": 40_000_000 }
    const issued = {
      "2023-04-01": -100_000,
      "2023-07-01": -200_000,
      "2023-10-01": -300_000,
      "2024-01-01": -400_000,
      "2024-07-01": -1_000_000,
    }
    near(combined("net_issuance", equity, issued), { "2024-01-01": (-250_000 / 50_000_000) * 100 })
  })

  it("erp_proxy is profits in percent of value, less the real yield known that day", () => {
    const equity = { "2024-01-01": 60_000_000, "2024-04-01": 60_000_000 }
    const profits = { "2024-01-01": 3000, "2024-04-01": 3300 }
    const real = { "2023-12-29": 1.75, "2024-01-02": 9, "2024-03-28": 1.9, "2024-04-01": 2 }
    near(combined("erp_proxy", equity, profits, real), {
      "2024-01-01": 5 - 1.75,
      "2024-04-01": 5.5 - 2,
    })
    assert.deepEqual(combined("erp_proxy", equity, profits, { "2024-01-02": 9 }), {})
  })
})
