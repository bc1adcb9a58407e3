/**
 * The capital pressure dashboard over HTTP. Everything is a GET, and public unless `capital.token`
 * is set. Source: document 3 §4 A, §5 A, §7 A; decisions of document 3.
 */
import { Redacted, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs, PublicWhen } from "#gateway/access.ts"
import examples from "#gateway/capital-pressure/examples.json" with { type: "json" }
import { Examples } from "#gateway/reference.ts"
import {
  Dashboard,
  Health,
  MetricDetail,
  MetricHistory,
  SchedulerStatus,
  Sources,
  TierHistory,
  Watchlist,
} from "#schemas/capital-pressure/dashboard.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { anywhere, NotFound, Unprocessable } from "#schemas/capital-pressure/rejection.ts"

/** May be earlier than every observation. */
const isDate = (text: string) => dateOf(dayOf(text)) === text

const expected = "a date, YYYY-MM-DD"

const Since = Schema.String.check(
  Schema.isPattern(/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/u, { expected }),
  Schema.makeFilter(isDate, { expected }),
).annotate({
  documentedAs: { type: "string", format: "date" },
})

const metric = {
  metric_id: Schema.String.annotate({
    description: "ID of a metric, from `GET /api/sources`.",
    documentedAs: { type: "string", enum: metrics.map(({ metric_id }) => metric_id) },
  }),
}
const tier = {
  tier: Schema.String.annotate({
    description: "Number of the tier, 1 to 4.",
    documentedAs: { type: "integer", minimum: 1, maximum: 4 },
  }),
}

const for_readers =
  "Public, unless `capital.token` is set: a token with the scope `dashboard:read` or the role " +
  "`admin` is required then."

const about = {
  group: "Capital pressure: readings of 24 metrics in four tiers, and their composite.",
  dashboard: {
    summary: "Get the dashboard",
    description:
      "Returns the composite, the four tiers with the latest reading of each metric, and the " +
      "composite of up to 252 business days. The data changes only when `ingest` runs; " +
      "`as_of` shows how old a reading is. The response has an ETag. " +
      for_readers,
  },
  history: {
    summary: "Get a metric's history",
    description:
      "Returns the stored values of a metric, oldest first, from `since` on. They are the raw " +
      `values, before year-over-year growth and z-scores. ${for_readers}`,
  },
  detail: {
    summary: "Get a metric",
    description:
      "Returns a metric's definition, its latest reading, and its indicator with the rolling " +
      `z-score over time. A stub has no reading and an empty series. ${for_readers}`,
  },
  tier: {
    summary: "Get a tier's history",
    description:
      "Returns the average directional z-score of a tier for each business day. Empty until " +
      `\`backfill-composite\` has run. ${for_readers}`,
  },
  sources: {
    summary: "List sources",
    description:
      "Returns one row for each registered metric: its publisher, whether it is ingested, and " +
      `the result of the last ingest. ${for_readers}`,
  },
  scheduler: {
    summary: "List scheduled jobs",
    description:
      "Returns the jobs that ingest data, with their last and next runs. The scheduler runs only " +
      `if \`capital.scheduler\` is true. ${for_readers}`,
  },
  watchlist: {
    summary: "Get the watchlist",
    description:
      "Returns prices and returns of eight healthcare stocks, compared with a sector fund and " +
      `with the operator's target prices. ${for_readers}`,
  },
  health: {
    summary: "Get the dashboard's health",
    description:
      "Returns 200 while the service responds. Does not read the data. Requires no token.",
  },
}

const unknown_metric = NotFound.annotate({
  description: "No metric has this id. The detail is `Unknown metric: <metric_id>`.",
})
const unknown_tier = NotFound.annotate({
  description: "The tier is not 1, 2, 3 or 4. The detail is `Unknown tier: <tier>`.",
})

const read = HttpApiGroup.make("dashboard")
  .annotate(OpenApi.Description, about.group)
  .add(
    HttpApiEndpoint.get("dashboard", "/api/dashboard", {
      success: Dashboard,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.dashboard)),
    HttpApiEndpoint.get("history", "/api/metrics/:metric_id/history", {
      params: metric,
      query: {
        since: Schema.optionalKey(Since).annotateKey({
          description: "First date to return, YYYY-MM-DD. The whole history by default.",
        }),
      },
      success: MetricHistory,
      error: [...anywhere, unknown_metric, Unprocessable],
    }).annotateMerge(OpenApi.annotations(about.history)),
    HttpApiEndpoint.get("detail", "/api/metrics/:metric_id/detail", {
      params: metric,
      success: MetricDetail,
      error: [...anywhere, unknown_metric],
    }).annotateMerge(OpenApi.annotations(about.detail)),
    HttpApiEndpoint.get("tier", "/api/tier/:tier/history", {
      params: tier,
      success: TierHistory,
      error: [...anywhere, unknown_tier],
    }).annotateMerge(OpenApi.annotations(about.tier)),
    HttpApiEndpoint.get("sources", "/api/sources", {
      success: Sources,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.sources)),
    HttpApiEndpoint.get("scheduler", "/api/scheduler", {
      success: SchedulerStatus,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.scheduler)),
    HttpApiEndpoint.get("watchlist", "/api/watchlist", {
      success: Watchlist,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.watchlist)),
  )
  .annotateEndpoints(Needs, { scopes: ["dashboard:read"], roles: ["admin"] })
  .annotateEndpoints(PublicWhen, ({ capital }) => Redacted.value(capital.token) === "")

const open = HttpApiGroup.make("dashboard-health")
  .annotate(OpenApi.Description, "Health of the capital pressure service.")
  .add(
    HttpApiEndpoint.get("get", "/health", { success: Health }).annotateMerge(
      OpenApi.annotations(about.health),
    ),
  )
  .annotateEndpoints(Needs, "public")

export const CapitalPressureApi = HttpApi.make("capital-pressure")
  .add(read, open)
  .annotate(Examples, examples)
