import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { sourcesOf } from "#projections/capital-pressure/source.ts"
import { Sources } from "#schemas/capital-pressure/dashboard.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { every, seriesOf, storeOf } from "../world/capital-pressure/store.ts"
import { syntheticStore } from "../world/capital-pressure/synthetic-store.ts"

const stubs = ["put_call", "uvol_dvol", "fund_flows", "buyback_yield"]

const rowOf = (store: Parameters<typeof sourcesOf>[0], metric_id: string) =>
  sourcesOf(store).rows.find((row) => row.metric_id === metric_id)

describe("the sources", () => {
  it("are all metrics in the registry's order, four of them stubs", () => {
    const { rows } = sourcesOf(storeOf())
    expect(rows.map(({ metric_id }) => metric_id)).toEqual(metrics.map((one) => one.metric_id))
    expect(rows).toHaveLength(24)
    const of_stubs = rows.filter(({ status }) => status === "stub")
    expect(of_stubs.map(({ metric_id }) => metric_id)).toEqual(stubs)
    expect(of_stubs.every(({ note }) => note?.endsWith("."))).toBe(true)
    expect(
      rows.filter(({ obs_count, last_observation }) => obs_count > 0 || last_observation),
    ).toEqual([])
  })

  it("report the stored days of each, and the state of its feed", () => {
    const store = storeOf({
      observations: new Map([
        [
          "nfci",
          seriesOf([
            ["2026-11-06", 1],
            ["2026-11-13", 2],
          ]),
        ],
      ]),
      feeds: new Map([
        [
          "nfci",
          {
            last_ingested_at: "2026-11-18T14:00:00.000Z",
            last_error_at: "2026-11-19T14:00:00.000Z",
            last_error: "FRED answered 429.",
            demo: true,
          },
        ],
      ]),
    })
    expect(rowOf(store, "nfci")).toEqual({
      metric_id: "nfci",
      name: "National financial conditions",
      tier: 1,
      source: "Chicago Fed via FRED",
      source_kind: "fred",
      cadence: "weekly (Fri)",
      status: "live",
      last_observation: "2026-11-13",
      last_ingested_at: "2026-11-18T14:00:00.000",
      obs_count: 2,
      last_error: "FRED answered 429.",
      note: null,
      demo: true,
    })
    expect(rowOf(store, "skew")).toMatchObject({
      last_observation: null,
      last_ingested_at: null,
      obs_count: 0,
      last_error: null,
      demo: false,
    })
  })

  it("have nothing of a stub, even if values of it are stored", () => {
    const observations = new Map([["put_call", every(1, "2024-01-01", [1, 2, 3])]])
    expect(rowOf(storeOf({ observations }), "put_call")).toMatchObject({
      obs_count: 0,
      last_observation: null,
      status: "stub",
    })
  })

  it("say of the one source whose certificate is not verified that it is not", () => {
    const noted = sourcesOf(storeOf()).rows.filter(({ note, status }) => note && status === "live")
    expect(noted.map(({ metric_id }) => metric_id)).toEqual(["cot_am_spx"])
    expect(noted[0]?.note).toContain("certificate is not verified")
  })

  it("are as the API describes them", () => {
    const found = sourcesOf(syntheticStore())
    expect(Schema.decodeUnknownSync(Sources)(found)).toEqual(found)
    const count = found.rows.reduce((sum, { obs_count }) => sum + obs_count, 0)
    expect(Math.round(count / 100)).toBe(579)
  })
})
