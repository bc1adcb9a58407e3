import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { indicatorOf } from "#projections/capital-pressure/indicator.ts"
import { dateOf, dayOf, yearBefore, yearsBefore } from "#schemas/capital-pressure/day.ts"
import type { Cadence } from "#schemas/capital-pressure/metric.ts"
import { naiveIndicator, naiveYearsBefore } from "../../world/capital-pressure/naive.ts"
import { metricOf, seriesOf } from "../../world/capital-pressure/store.ts"

const growth = (cadence: Cadence, rows: Parameters<typeof seriesOf>[0]) => {
  const { days, values } = indicatorOf({ indicator_kind: "yoy", cadence }, seriesOf(rows))
  return Array.from(days, (day, index) => [dateOf(day), values[index]])
}

describe("a date some years before", () => {
  it("is the same date of that year, from 1900 to 2199", () => {
    const wrong = []
    for (let day = dayOf("1900-01-01"); day <= dayOf("2199-12-31"); day++) {
      for (const years of [1, 3, 4]) {
        if (yearsBefore(day, years) !== naiveYearsBefore(day, years)) wrong.push([day, years])
      }
    }
    expect(wrong).toEqual([])
  })

  it.each([
    ["2024-02-29", 1, "2023-02-28"],
    ["2024-02-29", 4, "2020-02-29"],
    ["2024-03-01", 1, "2023-03-01"],
    ["2023-03-01", 3, "2020-03-01"],
    ["2100-02-28", 1, "2099-02-28"],
  ])("%s less %i is %s", (date, years, before) => {
    expect(dateOf(yearsBefore(dayOf(date), years))).toBe(before)
    if (years === 1) expect(dateOf(yearBefore(dayOf(date)))).toBe(before)
  })
})

describe("an indicator", () => {
  it("of a level is the observation", () => {
    const series = seriesOf([
      ["2020-01-01", 4.5],
      ["2020-01-02", -1],
    ])
    expect(indicatorOf({ indicator_kind: "level", cadence: "daily" }, series)).toEqual(series)
  })

  it("of growth is in percent since the same date a year before", () => {
    const rows = [
      ["2023-03-01", 200],
      ["2024-03-01", 210],
    ] as const
    const [[date, value] = []] = growth("monthly", rows)
    expect(date).toBe("2024-03-01")
    expect(value).toBeCloseTo(5, 12)
  })

  it("of 29 February compares with the 28th", () => {
    const rows = [
      ["2023-02-28", 100],
      ["2023-03-01", 1],
      ["2024-02-29", 110],
    ] as const
    expect(growth("daily", rows)).toEqual([["2024-02-29", expect.closeTo(10, 12)]])
  })

  it("compares with the newest value before that date, never with one after it", () => {
    const rows = [
      ["2022-12-30", 50],
      ["2023-01-03", 1],
      ["2024-01-02", 100],
    ] as const
    expect(growth("daily", rows)).toEqual([["2024-01-02", expect.closeTo(100, 12)]])
  })

  it.each([
    ["daily", 11],
    ["weekly", 17],
    ["monthly", 41],
    ["quarterly", 102],
  ] as const)("%s: compares with a value at most %i days older", (cadence, age_max) => {
    const end = dayOf("2024-06-03")
    const rows = (age: number) =>
      [
        [dateOf(yearBefore(end) - age), 100],
        ["2024-06-03", 150],
      ] as const
    expect(growth(cadence, rows(age_max))).toHaveLength(1)
    expect(growth(cadence, rows(age_max + 1))).toEqual([])
  })

  it.each([0, -5])("has no growth since %d", (base) => {
    expect(
      growth("monthly", [
        ["2023-03-01", base],
        ["2024-03-01", 210],
      ]),
    ).toEqual([])
  })

  it("has no growth in its first year", () => {
    expect(
      growth("monthly", [
        ["2023-03-01", 100],
        ["2024-02-01", 210],
      ]),
    ).toEqual([])
  })

  it("is what the rule says, of any series", () => {
    const gaps = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: -1, max: 9 })),
    )
    const ids = fc.constantFrom("net_liquidity", "margin_debt", "treasury_supply")
    fc.assert(
      fc.property(ids, gaps, (metric_id, steps) => {
        let day = dayOf("2019-11-30")
        const days = Int32Array.from(steps, ([gap]) => (day += gap))
        const series = { days, values: Float64Array.from(steps, ([, value]) => value) }
        const metric = metricOf(metric_id)
        const found = indicatorOf(metric, series)
        const expected = naiveIndicator(metric, series)
        expect(Array.from(found.days)).toEqual(expected.map((one) => one.day))
        expect(Array.from(found.values)).toEqual(expected.map(({ value }) => value))
      }),
      { numRuns: 300, examples: [["margin_debt", Array.from({ length: 30 }, () => [31, 2])]] },
    )
  })
})
