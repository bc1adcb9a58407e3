/** Each endpoint, each documented status, each field and each null. */
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { detailOf, historyOf } from "#projections/capital-pressure/detail.ts"
import { sourcesOf } from "#projections/capital-pressure/source.ts"
import { tierHistoryOf } from "#projections/capital-pressure/tier.ts"
import { watchlistOf } from "#projections/capital-pressure/watchlist.ts"
import * as shapes from "#schemas/capital-pressure/dashboard.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { findMetric, metrics } from "#schemas/capital-pressure/registry.ts"
import { type Dashboarded, startDashboard } from "../../world/capital-pressure/served.ts"
import { empty_store, fillFile } from "../../world/capital-pressure/store-file.ts"
import { synthetic_last_day, syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"

const store = syntheticStore()
const stubs = ["put_call", "uvol_dvol", "fund_flows", "buyback_yield"]
const live = metrics.filter(({ stub }) => stub === null)
const tier_numbers = [1, 2, 3, 4] as const

let full: Dashboarded
let bare: Dashboarded
let scheduled: Dashboarded
beforeAll(async () => {
  full = await startDashboard()
  fillFile(full.path, store)
  bare = await startDashboard()
  fillFile(bare.path, empty_store)
  scheduled = await startDashboard({ scheduler: true })
  fillFile(scheduled.path, store)
})
afterAll(async () => {
  await Promise.all([full.stop(), bare.stop(), scheduled.stop()])
})

const metricOf = (metric_id: string): Metric => {
  const metric = findMetric(metric_id)
  if (metric === undefined) throw new Error(metric_id)
  return metric
}

/** The body of a 200, which has exactly the fields of its schema. */
const read = async <S extends Schema.ConstraintDecoder<unknown>>(
  served: Dashboarded,
  path: string,
  schema: S,
): Promise<S["Type"]> => {
  const answer = await served.fetch(path)
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"])
  const body: unknown = await answer.json()
  return Schema.decodeUnknownSync(schema)(body, { onExcessProperty: "error" })
}

const refused = async (served: Dashboarded, path: string) => {
  const answer = await served.fetch(path)
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/)
  const body = await answer.json()
  expect(Object.keys(body)).toEqual(["detail"])
  return [answer.status, body.detail]
}

describe("/health", () => {
  it("is ok, regardless of the file", async () => {
    expect(await read(full, "/health", shapes.Health)).toEqual({ status: "ok" })
  })
})

describe("/api/dashboard", () => {
  it("has the composite, four tiers and a year of history", async () => {
    const body = await read(full, "/api/dashboard", shapes.Dashboard)
    expect(body).toEqual(dashboardOf(store, synthetic_last_day))
    const { bull, neutral, bear } = body.composite?.tally ?? { bull: 0, neutral: 0, bear: 0 }
    expect(bull + neutral + bear).toBe(body.composite?.metrics_total)
    expect(body.tiers.map(({ tier }) => tier)).toEqual([1, 2, 3, 4])
    expect(body.tiers.flatMap((one) => one.metrics).length).toBe(live.length)
    expect(body.composite_history.length).toBe(252)
    expect(body.composite_history.at(-1)?.index_close).toBeTypeOf("number")
  })

  it("of a file without data is null and empty, never an error", async () => {
    const body = await read(bare, "/api/dashboard", shapes.Dashboard)
    expect([body.composite, body.composite_history, body.demo]).toEqual([null, [], false])
    expect(body.tiers.map(({ avg_z, metrics: readings }) => [avg_z, readings])).toEqual(
      new Array(4).fill([null, []]),
    )
  })

  it("uses today by UTC: a day later it is computed again, a year later all is stale", async () => {
    const of = async (ms: number) => {
      await scheduled.setTime(ms)
      return read(scheduled, "/api/dashboard", shapes.Dashboard)
    }
    const last_ms = synthetic_last_day * 86_400_000
    const evening = await of(last_ms + 86_399_999)
    expect(evening).toEqual(dashboardOf(store, synthetic_last_day))
    expect(await of(last_ms + 86_400_000)).toEqual(dashboardOf(store, synthetic_last_day + 1))
    const later = await of(last_ms + 400 * 86_400_000)
    expect(later.tiers.flatMap((one) => one.metrics).every(({ stale }) => stale)).toBe(true)
    expect(later.composite_history).toEqual(evening.composite_history)
  })
})

describe("/api/metrics/{metric_id}/history", () => {
  const path = "/api/metrics/hy_spread/history"

  it.each(live.map(({ metric_id }) => metric_id))("of %s is what is stored", async (metric_id) => {
    const body = await read(full, `/api/metrics/${metric_id}/history`, shapes.MetricHistory)
    expect(body).toEqual(historyOf(store, metricOf(metric_id)))
    expect(body.points.length).toBe(store.observations.get(metric_id)?.days.length)
  })

  it("begins with `since`, that day included", async () => {
    const all = await read(full, path, shapes.MetricHistory)
    const { ts = "" } = all.points.at(-3) ?? {}
    const last = await read(full, `${path}?since=${ts}`, shapes.MetricHistory)
    expect(last.points).toEqual(all.points.slice(-3))
    const [{ ts: first } = { ts: "" }] = all.points
    for (const since of [first, "1900-01-01", "0001-01-01"]) {
      expect(await read(full, `${path}?since=${since}`, shapes.MetricHistory)).toEqual(all)
    }
    const after = await read(full, `${path}?since=9999-12-31`, shapes.MetricHistory)
    expect(after).toEqual({ metric_id: "hy_spread", points: [] })
  })

  it.each(["", "2024-1-1", "2024-02-30", "2023-02-29", "yesterday", "2024-01-01T00:00:00Z", "0"])(
    "since=%s is 422",
    async (since) => {
      const [status, detail] = await refused(full, `${path}?since=${since}`)
      expect([status, detail]).toEqual([422, "query.since: Expected a date, YYYY-MM-DD"])
    },
  )

  it("since twice is 422", async () => {
    const [status] = await refused(full, `${path}?since=2024-01-01&since=2024-01-02`)
    expect(status).toBe(422)
  })

  it.each([...stubs, "hy_spread"])("of %s without observations is empty", async (metric_id) => {
    const body = await read(bare, `/api/metrics/${metric_id}/history`, shapes.MetricHistory)
    expect(body).toEqual({ metric_id, points: [] })
  })
})

describe("/api/metrics/{metric_id}/detail", () => {
  it.each(live.map(({ metric_id }) => metric_id))("of %s has its series", async (metric_id) => {
    const body = await read(full, `/api/metrics/${metric_id}/detail`, shapes.MetricDetail)
    expect(body).toEqual(detailOf(store, metricOf(metric_id), synthetic_last_day))
    expect(body.reading?.metric_id).toBe(metric_id)
    expect(body.series[0]?.z).toBe(null)
    expect(body.series.at(-1)?.z).toBeTypeOf("number")
    expect(body.obs_count).toBe(store.observations.get(metric_id)?.days.length)
  })

  it.each(stubs)("of %s, a stub, has no reading and no series", async (metric_id) => {
    const body = await read(full, `/api/metrics/${metric_id}/detail`, shapes.MetricDetail)
    expect(body).toMatchObject({ reading: null, series: [], obs_count: 0, source_series: null })
  })

  it("of a metric without data has no reading", async () => {
    const body = await read(bare, "/api/metrics/nfci/detail", shapes.MetricDetail)
    expect(body).toMatchObject({ reading: null, series: [], obs_count: 0, source_kind: "fred" })
  })

  it.each(["detail", "history"])("%s of what is not registered is 404", async (page) => {
    for (const metric_id of ["nothing", "HY_SPREAD", "hy_spread%20", "%C3%A9", "__proto__"]) {
      const detail = `Unknown metric: ${decodeURIComponent(metric_id)}`
      const path = `/api/metrics/${metric_id}/${page}`
      expect(await refused(full, path)).toEqual([404, detail])
    }
  })
})

describe("/api/tier/{tier}/history", () => {
  it.each(tier_numbers)("of %i is its column", async (tier) => {
    const body = await read(full, `/api/tier/${tier}/history`, shapes.TierHistory)
    expect(body).toEqual(tierHistoryOf(store, tier))
    expect(body.latest_z).toBe(body.points.at(-1)?.z)
    expect(body.points.length).toBeGreaterThan(4000)
  })

  it.each(tier_numbers)("of %i before a backfill is empty", async (tier) => {
    const body = await read(bare, `/api/tier/${tier}/history`, shapes.TierHistory)
    expect(body).toMatchObject({ tier, points: [], latest_z: null })
  })

  it.each(["0", "5", "-1", "abc", "1.0", "01", "1e0", "%201"])("of %s is 404", async (tier) => {
    const detail = `Unknown tier: ${decodeURIComponent(tier)}`
    expect(await refused(full, `/api/tier/${tier}/history`)).toEqual([404, detail])
  })
})

describe("/api/sources", () => {
  it("has a row for each metric, stubs too", async () => {
    const { rows } = await read(full, "/api/sources", shapes.Sources)
    expect({ rows }).toEqual(sourcesOf(store))
    expect(rows.map(({ metric_id }) => metric_id)).toEqual(metrics.map((one) => one.metric_id))
    const of_stubs = rows.filter(({ status }) => status === "stub")
    expect(of_stubs.map(({ metric_id }) => metric_id).sort()).toEqual([...stubs].sort())
    expect(rows.find(({ metric_id }) => metric_id === "skew")?.last_error).toMatch(/503/)
  })

  it("before any ingest says so", async () => {
    const { rows } = await read(bare, "/api/sources", shapes.Sources)
    expect(rows.length).toBe(24)
    for (const row of rows) {
      expect(row).toMatchObject({ last_observation: null, last_ingested_at: null, obs_count: 0 })
    }
  })
})

describe("/api/scheduler", () => {
  it("lists the jobs when it is off, and none runs next", async () => {
    const { jobs } = await read(full, "/api/scheduler", shapes.SchedulerStatus)
    expect(jobs.map(({ id }) => id)).toEqual(["daily_ingest", "release_ingest"])
    expect(jobs.map(({ next_run_at }) => next_run_at)).toEqual([null, null])
    expect(jobs[0]?.last_success_at).toBe("2026-11-20T22:00:00.000")
    expect(jobs[1]?.last_run_at).toBe(null)
  })

  it("says when each runs next when it is on, by the zone's own clock", async () => {
    const of = async (time: string) => {
      await scheduled.setTime(Date.parse(time))
      const { jobs } = await read(scheduled, "/api/scheduler", shapes.SchedulerStatus)
      return jobs.map(({ next_run_at }) => next_run_at)
    }
    const friday = await of("2026-11-20T12:00:00Z")
    expect(friday).toEqual(["2026-11-20T22:00:00.000", "2026-11-20T23:00:00.000"])
    const between = await of("2026-11-20T22:00:00Z")
    expect(between).toEqual(["2026-11-23T22:00:00.000", "2026-11-20T23:00:00.000"])
    const summer = await of("2026-07-01T00:00:00Z")
    expect(summer).toEqual(["2026-07-01T21:00:00.000", "2026-07-03T22:00:00.000"])
  })
})

describe("/api/watchlist", () => {
  it("has a row for each of the eight names", async () => {
    const body = await read(full, "/api/watchlist", shapes.Watchlist)
    expect(body).toEqual(watchlistOf(store))
    expect([body.rows.length, body.benchmark]).toEqual([8, "XLV"])
  })

  it("without prices and targets has nulls", async () => {
    const { rows } = await read(bare, "/api/watchlist", shapes.Watchlist)
    expect(rows.length).toBe(8)
    for (const row of rows) {
      expect(row).toMatchObject({
        price: null,
        status: "no price",
        as_of: null,
        sparkline: [],
        fwd_pe: "n/a",
        return_30d: null,
        return_30d_relative: null,
      })
    }
  })
})

describe("an unknown path", () => {
  it.each(["/api", "/api/nothing", "/api/metrics", "/api/metrics/hy_spread", "/health/x"])(
    "%s is 404",
    async (path) => {
      const answer = await full.fetch(path)
      expect(answer.status).toBe(404)
    },
  )

  it.each(["POST", "PUT", "PATCH", "DELETE"])("%s is 405, with what is allowed", async (method) => {
    for (const path of ["/health", "/api/dashboard", "/api/metrics/nfci/detail"]) {
      const answer = await full.fetch(path, { method })
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"])
      expect(Object.keys(await answer.json())).toEqual(["detail"])
    }
  })
})
