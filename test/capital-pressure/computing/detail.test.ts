import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { detailOf, historyOf } from "#projections/capital-pressure/detail.ts"
import { MetricDetail, MetricHistory } from "#schemas/capital-pressure/dashboard.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { every, metricOf, seriesOf, storeOf } from "../../world/capital-pressure/store.ts"
import {
  syntheticStore,
  synthetic_last_day as today,
} from "../../world/capital-pressure/synthetic-store.ts"

const store = syntheticStore(1)

const stored = storeOf({
  observations: new Map([
    [
      "margin_debt",
      seriesOf([
        ["2024-01-01", 100],
        ["2024-02-01", 200],
        ["2025-01-01", 104.7],
      ]),
    ],
    ["put_call", every(1, "2024-01-01", [1, 2, 3])],
  ]),
})

describe("a metric's detail", () => {
  it("returns its rules, its reading and its series", () => {
    const found = detailOf(stored, metricOf("margin_debt"), dayOf("2025-02-03"))
    expect(found).toEqual({
      metric_id: "margin_debt",
      name: "Margin debt growth",
      tier: 3,
      source: "FINRA margin statistics",
      source_kind: "finra",
      source_series: metricOf("margin_debt").source_series,
      unit: "% yoy",
      cadence: "monthly",
      description: metricOf("margin_debt").description,
      direction_kind: "higher_bullish",
      indicator_kind: "yoy",
      indicator_window: 1096,
      indicator_lag: 365,
      publication_lag: 25,
      zscore_years: 3,
      include_in_composite: true,
      reading: expect.objectContaining({ value: "+4.7%", as_of: "2025-01-01" }),
      series: [{ ts: "2025-01-01", indicator: 4.7, z: null }],
      obs_count: 3,
    })
  })

  it("has a series up to the newest value, known yet or not", () => {
    const { reading, series } = detailOf(stored, metricOf("margin_debt"), dayOf("2025-01-02"))
    expect(reading).toBeNull()
    expect(series).toHaveLength(1)
  })

  it("of a stub has no reading and no series, even if values are stored", () => {
    for (const metric of metrics.filter(({ stub }) => stub !== null)) {
      const found = detailOf(stored, metric, today)
      expect(found).toMatchObject({ reading: null, series: [], obs_count: 0, source_kind: "none" })
    }
  })

  it("without data has no reading and no series", () => {
    expect(detailOf(storeOf(), metricOf("nfci"), today)).toMatchObject({
      reading: null,
      series: [],
      obs_count: 0,
      indicator_lag: 0,
      cadence: "weekly (Fri)",
    })
    expect(detailOf(storeOf(), metricOf("hy_spread"), today)).toMatchObject({
      indicator_window: 365,
      zscore_years: 1,
    })
  })

  it("is as the API describes it, and agrees with the dashboard, for every metric", () => {
    const visible = dashboardOf(store, today).tiers.flatMap((tier) => tier.metrics)
    for (const metric of metrics) {
      const found = detailOf(store, metric, today)
      expect(Schema.decodeUnknownSync(MetricDetail)(found)).toEqual(found)
      const reading = visible.find(({ metric_id }) => metric_id === metric.metric_id) ?? null
      expect(found.reading).toEqual(reading)
      expect(found.obs_count).toBe(store.observations.get(metric.metric_id)?.days.length ?? 0)
      if (reading === null) continue
      const at = found.series.find(({ ts }) => ts === reading.as_of)
      expect(at?.z).toBe(reading.z)
      expect(at?.indicator).toBe(reading.sparkline.at(-1))
      expect(found.series[0]?.z).toBeNull()
    }
  })
})

describe("a metric's history", () => {
  const ts = (since?: string) =>
    historyOf(
      stored,
      metricOf("margin_debt"),
      since === undefined ? undefined : dayOf(since),
    ).points.map((point) => point.ts)

  it("has the values as they were stored, oldest first", () => {
    expect(historyOf(stored, metricOf("margin_debt"))).toEqual({
      metric_id: "margin_debt",
      points: [
        { ts: "2024-01-01", value: 100 },
        { ts: "2024-02-01", value: 200 },
        { ts: "2025-01-01", value: 104.7 },
      ],
    })
  })

  it("begins with the day that is asked for, if there is a value of it", () => {
    expect(ts("2024-02-01")).toEqual(["2024-02-01", "2025-01-01"])
    expect(ts("2024-02-02")).toEqual(["2025-01-01"])
    expect(ts("1900-01-01")).toEqual(ts())
    expect(ts("2025-01-02")).toEqual([])
  })

  it("is empty without data, and of a stub", () => {
    expect(historyOf(storeOf(), metricOf("nfci")).points).toEqual([])
    expect(historyOf(stored, metricOf("put_call")).points).toEqual([])
  })

  it("is as the API describes it", () => {
    const found = historyOf(store, metricOf("treasury_supply"))
    expect(found.points.length).toBeGreaterThan(6000)
    expect(Schema.decodeUnknownSync(MetricHistory)(found)).toEqual(found)
  })
})
