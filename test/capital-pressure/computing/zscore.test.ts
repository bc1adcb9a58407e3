import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { observationsMin, zScores } from "#projections/capital-pressure/zscore.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import type { Cadence, Metric } from "#schemas/capital-pressure/metric.ts"
import { naiveZ, pointsOf } from "../../world/capital-pressure/naive.ts"
import { every, metricOf } from "../../world/capital-pressure/store.ts"

const weekly = metricOf("nfci")
const yearly_daily = metricOf("hy_spread")

/** Values that vary but have no trend. */
const waves = (length: number) => Array.from({ length }, (_, index) => Math.sin(index * 1.7))

/** The dates that have a z-score. */
const scoredDates = (metric: Metric, series: Parameters<typeof zScores>[1]) => {
  const z = zScores(metric, series)
  return Array.from(series.days, dateOf).filter((_, index) => !Number.isNaN(z[index]))
}

describe("a z-score", () => {
  it("is the distance to the window's mean in sample deviations, itself included", () => {
    const quarterly = metricOf("equity_gdp")
    const values = [50, 50, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    const z = zScores(quarterly, every(92, "2020-01-01", values))
    // The last three years hold 1 to 12, with mean 6.5; the 50s are older.
    const squares = Array.from({ length: 12 }, (_, index) => (index + 1 - 6.5) ** 2)
    const deviation = Math.sqrt(squares.reduce((sum, one) => sum + one, 0) / 11)
    expect(z.at(-1)).toBeCloseTo(5.5 / deviation, 12)
  })

  it.each([
    ["daily", 7],
    ["weekly", 10],
    ["monthly", 45],
    ["quarterly", 120],
  ] as const)("%s: begins when the window has filled, %i days early at most", (cadence, days) => {
    const gap = { daily: 1, weekly: 7, monthly: 30, quarterly: 90 }[cadence]
    const first = dayOf("2020-01-01")
    const series = every(gap, "2020-01-01", waves(Math.ceil(1500 / gap)))
    const filled = dayOf("2023-01-01") - days
    const begin = series.days.find((day) => day >= filled) ?? 0
    expect(begin).toBeGreaterThan(first)
    expect(scoredDates({ ...weekly, cadence }, series)[0]).toBe(dateOf(begin))
  })

  it("of hy_spread looks back one year", () => {
    const series = every(1, "2020-01-01", waves(800))
    expect(scoredDates(yearly_daily, series)[0]).toBe("2020-12-25")
    const changed = { ...series, values: series.values.map((one, day) => (day < 300 ? 9 : one)) }
    expect(zScores(yearly_daily, changed).at(-1)).toBeCloseTo(
      zScores(yearly_daily, series).at(-1) ?? 0,
      9,
    )
  })

  it.each([
    ["daily", 1, 150],
    ["daily", 3, 450],
    ["weekly", 3, 120],
    ["monthly", 3, 30],
    ["quarterly", 3, 10],
    ["quarterly", 1, 10],
  ] as const)("%s over %i years: needs %i values", (cadence: Cadence, zscore_years, count) => {
    expect(observationsMin(cadence, zscore_years)).toBe(count)
    // One value before the window, and `inside` values within it.
    const of = (inside: number) => {
      const { days, values } = every(1, "2023-06-01", waves(inside))
      const early = dayOf("2019-01-01")
      return zScores(
        { cadence, zscore_years },
        { days: Int32Array.of(early, ...days), values: Float64Array.of(0, ...values) },
      )
    }
    if (count <= 200 || zscore_years === 3) {
      expect(of(count - 1).at(-1)).toBeNaN()
      expect(of(count).at(-1)).not.toBeNaN()
    }
  })

  it.each([0, 0.1, 6.7e6, -3e-9])("is none among equal values of %d", (value) => {
    const { days } = every(7, "2015-01-01", waves(500))
    const z = zScores(weekly, { days, values: new Float64Array(500).fill(value) })
    expect(z.every(Number.isNaN)).toBe(true)
  })

  it("is none when what differed has left the window", () => {
    const values = Float64Array.from(waves(600), (wave, index) => (index < 300 ? wave : 0.1))
    const dates = scoredDates(weekly, every(7, "2010-01-01", values))
    // The last varying value is of 2015-09-25; three years later it leaves the window.
    expect(dates.at(-1)).toBe("2018-09-21")
  })

  it("takes the value of exactly three years before for one outside of the window", () => {
    const quarterly = metricOf("equity_gdp")
    const series = every(1, "2020-06-15", waves(1200))
    const at = series.days.findIndex((day) => dateOf(day) === "2023-06-15")
    const changed = series.values.slice()
    changed[0] = 1e6
    expect(zScores(quarterly, { ...series, values: changed })[at]).toBeCloseTo(
      zScores(quarterly, series)[at] ?? 0,
      9,
    )
    expect(zScores(quarterly, { ...series, values: changed })[at - 1]).toBeCloseTo(-0.03, 2)
  })

  it("is what the rule says, of any series", () => {
    const cadences = fc.constantFrom("hy_spread", "nfci", "m2_growth", "equity_gdp")
    const gap_max = { daily: 3, weekly: 12, monthly: 50, quarterly: 140 }
    const count = { daily: 500, weekly: 230, monthly: 60, quarterly: 24 }
    fc.assert(
      fc.property(cadences, fc.infiniteStream(fc.nat({ max: 1000 })), (metric_id, stream) => {
        const metric = metricOf(metric_id)
        const next = () => stream.next().value ?? 0
        const scale = 10 ** (next() % 9)
        let day = dayOf("2001-01-01") + next()
        const days = new Int32Array(count[metric.cadence])
        const values = new Float64Array(days.length)
        for (let index = 0; index < days.length; index++) {
          day += 1 + (next() % gap_max[metric.cadence])
          days[index] = day
          // Ties, runs of equal values, and occasional outliers.
          const kind = next()
          values[index] = kind < 300 ? scale : scale + (next() % 7) * (kind > 990 ? scale : 1)
        }
        const points = pointsOf({ days, values })
        const z = zScores(metric, { days, values })
        for (const [index, point] of points.entries()) {
          const expected = naiveZ(metric, points, point)
          const found = z[index] ?? Number.NaN
          if (expected === null) expect(found).toBeNaN()
          else
            expect(Math.abs(found - expected) / Math.max(1, Math.abs(expected))).toBeLessThan(1e-8)
        }
      }),
      { numRuns: 40 },
    )
  })

  it("depends on no value after it", () => {
    const series = every(7, "2010-01-01", waves(900))
    const all = zScores(weekly, series)
    const half = zScores(weekly, {
      days: series.days.subarray(0, 450),
      values: series.values.subarray(0, 450),
    })
    expect(half).toEqual(all.subarray(0, 450))
  })
})
