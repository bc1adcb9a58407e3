/** The page's idea of what the API answers is the API's own: held by the compiler, in both ways. */
import { Schema } from "effect"
import { describe, expect, expectTypeOf, it } from "vitest"
import * as served from "#schemas/capital-pressure/dashboard.ts"
import type * as page from "../../web/api.ts"
import { bodiesOf, stores } from "./canned.ts"

describe("the shapes that the page reads", () => {
  it("are those of the schemas", () => {
    expectTypeOf<page.Dashboard>().toEqualTypeOf<served.Dashboard>()
    expectTypeOf<page.Reading>().toEqualTypeOf<served.Reading>()
    expectTypeOf<page.CompositePoint>().toEqualTypeOf<served.CompositePoint>()
    expectTypeOf<page.MetricDetail>().toEqualTypeOf<served.MetricDetail>()
    expectTypeOf<page.MetricHistory>().toEqualTypeOf<served.MetricHistory>()
    expectTypeOf<page.Sources>().toEqualTypeOf<served.Sources>()
    expectTypeOf<page.SchedulerStatus>().toEqualTypeOf<served.SchedulerStatus>()
    expectTypeOf<page.Watchlist>().toEqualTypeOf<served.Watchlist>()
  })

  it("are those of the answers that the page is tried with", () => {
    const bodies = bodiesOf(stores.whole)
    const schemas = {
      "/api/dashboard": served.Dashboard,
      "/api/sources": served.Sources,
      "/api/scheduler": served.SchedulerStatus,
      "/api/watchlist": served.Watchlist,
      "/api/metrics/nfci/detail": served.MetricDetail,
      "/api/metrics/nfci/history": served.MetricHistory,
    }
    for (const [path, schema] of Object.entries(schemas)) {
      const decode = Schema.decodeUnknownExit(Schema.fromJsonString(schema))
      expect([path, decode(bodies.get(path))._tag]).toEqual([path, "Success"])
    }
  })
})
