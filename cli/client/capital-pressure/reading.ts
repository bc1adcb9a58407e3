/** `almanac readings`: the dashboard in a terminal. Source: document 3, capital pressure §4. */
import { type CommandGroup, text } from "#cli/client/operation.ts"

export const readings: CommandGroup = {
  name: "readings",
  operations: [
    { command: "show", method: "GET", path: "/api/dashboard", what: "The composite and its tiers" },
    {
      command: "sources",
      method: "GET",
      path: "/api/sources",
      items: "rows",
      what: "Each metric with where it comes from",
      columns: ["metric_id", "status", "tier", "last_observation", "obs_count", "source", "name"],
    },
    {
      command: "history",
      method: "GET",
      path: "/api/metrics/{metric_id}/history",
      what: "The values of a metric",
      items: "points",
      columns: ["ts", "value"],
      query: [text("since", "From this day on (2026-01-31)")],
    },
    {
      command: "detail",
      method: "GET",
      path: "/api/metrics/{metric_id}/detail",
      what: "All about a metric",
    },
    {
      command: "tier",
      method: "GET",
      path: "/api/tier/{tier}/history",
      items: "points",
      what: "The average of a tier by day",
      columns: ["ts", "z"],
    },
    {
      command: "jobs",
      method: "GET",
      path: "/api/scheduler",
      items: "jobs",
      what: "What the scheduler runs, and when",
      columns: ["id", "schedule_repr", "next_run_at", "last_success_at", "last_error", "label"],
    },
    {
      command: "watchlist",
      method: "GET",
      path: "/api/watchlist",
      items: "rows",
      what: "The watchlist",
      columns: ["ticker", "price", "target", "status", "return_30d", "as_of", "name"],
    },
  ],
}
