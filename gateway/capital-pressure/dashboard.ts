import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CapitalPressureApi } from "#gateway/capital-pressure/api.ts"
import { type DashboardQuery, DashboardReader } from "#gateway/capital-pressure/dashboard-reader.ts"
import { represented } from "#gateway/representation.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"
import { NotFound } from "#schemas/capital-pressure/rejection.ts"
import { tiers } from "#schemas/capital-pressure/tier.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Caches store the response and revalidate it each time, mostly with 304. */
const headers = { "cache-control": "no-cache" }

const show = (request: Request, query: DashboardQuery) =>
  Effect.flatMapEager(DashboardReader, (reader) =>
    Effect.mapEager(reader.read(query), (page) =>
      represented(request, page, "application/json", headers),
    ),
  )

/** A query about a metric; 404 if it is not registered, even if the file has data for it. */
const ofMetric = (request: Request, query: DashboardQuery & { readonly metric_id: string }) =>
  findMetric(query.metric_id) === undefined
    ? Effect.fail(new NotFound({ detail: `Unknown metric: ${query.metric_id}` }))
    : show(request, query)

const ofTier = (request: Request, text: string) => {
  const known = tiers.find(({ tier }) => String(tier) === text)
  return known === undefined
    ? Effect.fail(new NotFound({ detail: `Unknown tier: ${text}` }))
    : show(request, { kind: "tier", tier: known.tier })
}

const pages = HttpApiBuilder.group(CapitalPressureApi, "dashboard", (handlers) =>
  handlers.handleAll({
    dashboard: ({ request }) => show(request, { kind: "dashboard" }),
    history: ({ request, params: { metric_id }, query }) =>
      ofMetric(request, { kind: "history", metric_id, since: query.since ?? null }),
    detail: ({ request, params: { metric_id } }) =>
      ofMetric(request, { kind: "detail", metric_id }),
    tier: ({ request, params }) => ofTier(request, params.tier),
    sources: ({ request }) => show(request, { kind: "sources" }),
    scheduler: ({ request }) => show(request, { kind: "scheduler" }),
    watchlist: ({ request }) => show(request, { kind: "watchlist" }),
  }),
)

const health = HttpApiBuilder.group(CapitalPressureApi, "dashboard-health", (handlers) =>
  handlers.handle("get", () => Effect.succeed({ status: "ok" as const })),
)

/** The handlers of CapitalPressureApi. */
export const dashboard = Layer.mergeAll(pages, health)
