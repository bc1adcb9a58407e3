import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { readingOf } from "#projections/capital-pressure/reading.ts"
import { scoreOf } from "#projections/capital-pressure/score.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { Reading } from "#schemas/capital-pressure/dashboard.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { every, metricOf, seriesOf } from "../../world/capital-pressure/store.ts"

const read = (metric_id: string, series: Series, date: string, demo = false) =>
  readingOf(scoreOf(metricOf(metric_id), series), dayOf(date), demo)

/** Like `read`, but fails if there is no reading. */
const reading = (...given: Parameters<typeof read>): Reading => {
  const found = read(...given)
  if (found === undefined) throw new Error("there is no reading")
  return found
}

const short = seriesOf([
  ["2026-11-17", 3.05],
  ["2026-11-18", 2.92],
  ["2026-11-19", 3],
])

describe("a reading", () => {
  it("has a metric's newest value, its change and its vote", () => {
    expect(reading("hy_spread", short, "2026-11-20")).toEqual({
      metric_id: "hy_spread",
      name: "High yield spread",
      tier: 1,
      source: "ICE BofA via FRED",
      unit: "%",
      value: "3.00%",
      delta: "+8 bp",
      delta_class: "bear",
      z: null,
      z_label: "n/a",
      z_class: "neutral",
      as_of: "2026-11-19",
      sparkline: [3.05, 2.92, 3],
      vote: { direction: "neutral", reason: "History too short for a z-score" },
      include_in_composite: true,
      description: metricOf("hy_spread").description,
      stale: false,
      demo: false,
    })
  })

  it("is of what was known on its day", () => {
    expect(reading("hy_spread", short, "2026-11-19")).toMatchObject({
      as_of: "2026-11-18",
      value: "2.92%",
      delta: "-13 bp",
      delta_class: "bull",
      sparkline: [3.05, 2.92],
    })
  })

  it("of a first value has no change", () => {
    expect(reading("hy_spread", short, "2026-11-18")).toMatchObject({
      as_of: "2026-11-17",
      delta: "n/a",
      delta_class: "neutral",
    })
  })

  it("is none before the first value is known, and without one", () => {
    expect(read("hy_spread", short, "2026-11-17")).toBeUndefined()
    expect(read("hy_spread", seriesOf([]), "2026-11-20")).toBeUndefined()
  })

  it("of growth is none in its first year", () => {
    const monthly = every(30, "2024-01-01", [100, 101, 102])
    expect(read("margin_debt", monthly, "2024-08-01")).toBeUndefined()
  })

  it("of growth has the growth", () => {
    const monthly = seriesOf([
      ["2024-01-01", 100],
      ["2025-01-01", 104.7],
    ])
    expect(reading("margin_debt", monthly, "2025-02-03")).toMatchObject({
      value: "+4.7%",
      delta: "n/a",
      sparkline: [4.7],
    })
  })

  it("keeps its z-score plain, and labels it by its direction", () => {
    const values = Array.from({ length: 200 }, (_, index) => (index === 199 ? 40 : index % 10))
    const weekly = every(7, "2020-01-03", values)
    const bullish = reading("cot_am_spx", weekly, "2023-11-20")
    const bearish = reading("nfci", weekly, "2023-11-20")
    expect(bullish.z).toBeGreaterThan(2)
    expect(bearish.z).toBe(bullish.z)
    expect([bullish.z_label, bullish.z_class]).toEqual(["very easy", "bull"])
    expect([bearish.z_label, bearish.z_class]).toEqual(["very tight", "bear"])
    expect([bullish.vote.direction, bearish.vote.direction]).toEqual(["bull", "bear"])
    expect([bullish.delta_class, bearish.delta_class]).toEqual(["bull", "bear"])
    expect(bullish.z).toBe(Number(bullish.z?.toFixed(4)))
  })

  it.each([
    ["hy_spread", "daily", 1, 60],
    ["nfci", "weekly", 7, 52],
    ["margin_cushion", "monthly", 31, 36],
    ["equity_gdp", "quarterly", 91, 20],
  ] as const)("of %s, which is %s, has a line of its values %i days apart: %i", (...row) => {
    const [metric_id, , gap, points] = row
    const values = Array.from({ length: 100 }, (_, index) => index)
    const { sparkline, as_of } = reading(metric_id, every(gap, "2000-01-03", values), "2027-01-01")
    expect(sparkline).toEqual(values.slice(-points))
    expect(dayOf(as_of)).toBe(dayOf("2000-01-03") + gap * 99)
  })

  it.each([
    ["hy_spread", 10],
    ["nfci", 21],
    ["m2_growth", 95],
    ["equity_gdp", 290],
  ] as const)("of %s goes stale after %i days, and says how old it is", (metric_id, days) => {
    const series = seriesOf([
      ["2024-03-01", 100],
      ["2025-03-01", 101],
    ])
    const last = dayOf("2025-03-01")
    const at = (age: number) => {
      const found = readingOf(scoreOf(metricOf(metric_id), series), last + age, false)
      return [found?.stale, found?.description]
    }
    const { description } = metricOf(metric_id)
    expect(at(days)).toEqual([false, description])
    expect(at(days + 1)).toEqual([
      true,
      `${description} This value is ${days + 1} days old: ` +
        "it is ignored until a newer one arrives.",
    ])
  })

  it("says that it is generated", () => {
    expect(reading("hy_spread", short, "2026-11-20", true).demo).toBe(true)
  })

  it("is as the API describes it", () => {
    const found = reading("hy_spread", short, "2026-11-20")
    expect(Schema.decodeUnknownSync(Reading)(found)).toEqual(found)
  })
})
