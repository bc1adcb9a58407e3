/**
 * The capital pressure dashboard over HTTP. Everything is a GET, and public unless `capital.token`
 * is set. Source: document 3 §4 A, §5 A, §7 A; decisions of document 3.
 */
import { Redacted, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs, PublicWhen } from "#gateway/access.ts"
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
import { anywhere, NotFound, Unprocessable } from "#schemas/capital-pressure/rejection.ts"

/** May be earlier than every observation. */
const isDate = (text: string) => dateOf(dayOf(text)) === text

const expected = "a date, YYYY-MM-DD"

const Since = Schema.String.check(
  Schema.isPattern(/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/u, { expected }),
  Schema.makeFilter(isDate, { expected }),
).annotate({ description: "YYYY-MM-DD, inclusive; without it the whole history." })

const metric = {
  metric_id: Schema.String.annotate({ description: "As /api/sources lists them." }),
}
const tier = { tier: Schema.String.annotate({ description: "1, 2, 3 or 4." }) }

const about =
  "Readings of 24 metrics in four tiers, and their composite. Public unless `capital.token` is set."

const read = HttpApiGroup.make("dashboard")
  .annotate(OpenApi.Description, about)
  .add(
    HttpApiEndpoint.get("dashboard", "/api/dashboard", {
      success: Dashboard,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read the composite, its history and every tier"),
    HttpApiEndpoint.get("history", "/api/metrics/:metric_id/history", {
      params: metric,
      query: { since: Schema.optionalKey(Since) },
      success: MetricHistory,
      error: [...anywhere, NotFound, Unprocessable],
    }).annotate(OpenApi.Summary, "Read a metric's stored values"),
    HttpApiEndpoint.get("detail", "/api/metrics/:metric_id/detail", {
      params: metric,
      success: MetricDetail,
      error: [...anywhere, NotFound],
    }).annotate(OpenApi.Summary, "Read a metric with its indicator and z-score"),
    HttpApiEndpoint.get("tier", "/api/tier/:tier/history", {
      params: tier,
      success: TierHistory,
      error: [...anywhere, NotFound],
    }).annotate(OpenApi.Summary, "Read a tier's average over time"),
    HttpApiEndpoint.get("sources", "/api/sources", {
      success: Sources,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read where each metric comes from, and how its ingest went"),
    HttpApiEndpoint.get("scheduler", "/api/scheduler", {
      success: SchedulerStatus,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read the ingest's jobs and how they went"),
    HttpApiEndpoint.get("watchlist", "/api/watchlist", {
      success: Watchlist,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read prices of the watched names"),
  )
  .annotateEndpoints(Needs, { scopes: ["dashboard:read"], roles: ["admin"] })
  .annotateEndpoints(PublicWhen, ({ capital }) => Redacted.value(capital.token) === "")

const open = HttpApiGroup.make("dashboard-health")
  .annotate(OpenApi.Description, "Whether the dashboard's service answers.")
  .add(
    HttpApiEndpoint.get("get", "/health", { success: Health }).annotate(
      OpenApi.Summary,
      "Read whether the service answers",
    ),
  )
  .annotateEndpoints(Needs, "public")

export const CapitalPressureApi = HttpApi.make("capital-pressure").add(read, open)
