/**
 * The page's response types match those of the API in both directions, as checked by the compiler.
 */
import { Schema } from "effect"
import { describe, expect, expectTypeOf, it } from "vitest"
import * as served from "#schemas/capital-pressure/dashboard.ts"
import type * as carrier from "#schemas/carrier-search/carrier.ts"
import type * as lines from "#schemas/carrier-search/line.ts"
import type * as source from "#schemas/carrier-search/source.ts"
import type * as model from "#schemas/plant-disease/model.ts"
import type * as answer from "#schemas/plant-disease/response.ts"
import type * as page from "../../web/capital-pressure/api.ts"
import type * as carrier_page from "../../web/carrier-search/api.ts"
import type * as plant_page from "../../web/plant-disease/api.ts"
import { bodiesOf, stores } from "../world/web/canned.ts"

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
    expectTypeOf<carrier_page.Carrier>().toEqualTypeOf<carrier.Carrier>()
    expectTypeOf<carrier_page.Source>().toEqualTypeOf<source.Source>()
    expectTypeOf<plant_page.Prediction>().toEqualTypeOf<answer.Prediction>()
    expectTypeOf<plant_page.ModelInfo>().toEqualTypeOf<model.ModelInfo>()
    expectTypeOf<carrier_page.Progress>().toEqualTypeOf<typeof lines.Progress.Type.progress>()
    expectTypeOf<carrier_page.Summary>().toEqualTypeOf<typeof lines.Summary.Type.summary>()
    expectTypeOf<carrier_page.Sources>().toEqualTypeOf<typeof source.Sources.Type>()
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
