/** The charts of all kinds of aggregates over HTTP: what docs/lifecycles.md draws, as data. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { ChartList } from "#schemas/system/chart.ts"
import { Forbidden } from "#schemas/system/rejection.ts"

export const ChartsGroup = HttpApiGroup.make("charts")
  .annotate(OpenApi.Description, "Charts: which states there are, and the ways between them.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/charts", { success: ChartList, error: Forbidden })
      .annotate(OpenApi.Summary, "List the charts of all kinds of aggregates")
      .annotate(Needs, { roles: ["admin"] }),
  )
