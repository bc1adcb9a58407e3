/** `almanac readings`: the dashboard in a terminal. Source: document 3, capital pressure §4. */
import { isList, isObject, type Json, memberAt } from "#cli/client/json.ts"
import { type CommandGroup, type Section, text } from "#cli/client/operation.ts"

const listAt = (body: Json, name: string) => {
  const found = memberAt(body, name)
  return isList(found) ? found : []
}

/** The dashboard as a page: the composite, its tiers, and the metrics of each tier. */
const sectionsOf = (body: Json): ReadonlyArray<Section> => {
  const tiers = listAt(body, "tiers")
  const composite = memberAt(body, "composite") ?? null
  const demo = memberAt(body, "demo") ?? null
  const last = listAt(body, "composite_history").at(-1)
  const day = memberAt(last, "ts")
  const summary = {
    ...(isObject(composite) ? composite : { composite }),
    ...(day === undefined ? {} : { date: day }),
    demo,
  }
  const metrics = tiers.flatMap((tier) => listAt(tier, "metrics"))
  return [
    { title: "COMPOSITE", items: [summary] },
    {
      title: "TIERS",
      items: tiers.map((tier) => ({
        ...(isObject(tier) ? tier : {}),
        metric_count: listAt(tier, "metrics").length,
      })),
      columns: ["tier", "name", "avg_z", "metric_count", "cadence"],
    },
    ...(metrics.length === 0
      ? []
      : [
          {
            title: "METRICS",
            items: metrics,
            columns: ["tier", "metric_id", "value", "delta", "z", "z_label", "as_of", "name"],
          },
        ]),
  ]
}

export const readings: CommandGroup = {
  name: "readings",
  operations: [
    {
      command: "show",
      method: "GET",
      path: "/api/dashboard",
      sections: sectionsOf,
      what: "Show the composite, its tiers and their metrics",
    },
    {
      command: "sources",
      method: "GET",
      path: "/api/sources",
      items: "rows",
      what: "List the metrics with their sources and freshness",
      columns: ["metric_id", "status", "tier", "last_observation", "obs_count", "source", "name"],
    },
    {
      command: "history",
      method: "GET",
      path: "/api/metrics/{metric_id}/history",
      what: "List the values of a metric",
      items: "points",
      columns: ["ts", "value"],
      example: "almanac readings history hy_spread --since 2026-01-31",
      query: [text("since", "First day (2026-01-31)")],
    },
    {
      command: "detail",
      method: "GET",
      path: "/api/metrics/{metric_id}/detail",
      example: "almanac readings detail hy_spread",
      what: "Show the details of a metric",
    },
    {
      command: "tier",
      method: "GET",
      path: "/api/tier/{tier}/history",
      items: "points",
      what: "List the daily average of a tier",
      columns: ["ts", "z"],
      example: "almanac readings tier 1",
    },
    {
      command: "jobs",
      method: "GET",
      path: "/api/scheduler",
      items: "jobs",
      what: "List the jobs of the scheduler",
      columns: ["id", "schedule_repr", "next_run_at", "last_success_at", "last_error", "label"],
    },
    {
      command: "watchlist",
      method: "GET",
      path: "/api/watchlist",
      items: "rows",
      what: "List the watchlist",
      columns: ["ticker", "price", "target", "status", "return_30d", "as_of", "name"],
    },
  ],
}
