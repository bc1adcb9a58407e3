/** The capital pressure page, refreshed every minute. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import { clock, date, meaning, signed, tallyText } from "../format.ts"
import { fillHeader } from "../header.ts"
import { badge } from "../mark.ts"
import type { Composite, Dashboard, SchedulerStatus, Sources, Watchlist } from "./api.ts"
import { get, type Problem, type Result, useToken } from "./client.ts"
import { compositePanel } from "./composite-panel.ts"
import { drawer } from "./drawer.ts"
import { mountHistory } from "./history-chart.ts"
import { missingComposite, newestDay } from "./missing-composite.ts"
import { emptyState, problemNotice } from "./notice.ts"
import { schedulerTable } from "./scheduler-table.ts"
import { sourceTable } from "./source-table.ts"
import { tierCards } from "./tier-card.ts"
import { watchlistTable } from "./watchlist-table.ts"

const refresh_ms = 60_000
/** Backoff after consecutive failures; the last value repeats. */
const retries_ms = [5_000, 10_000, 20_000, 40_000, 60_000] as const

interface PageState {
  dashboard?: Dashboard
  watchlist?: Watchlist
  sources?: Sources
  scheduler?: SchedulerStatus
  problem?: Problem
  /** Time of the last successful response. */
  read_at?: number
}
const state: PageState = {}
let failures = 0
let timer: ReturnType<typeof setTimeout> | undefined

const isEmpty = ({ composite, tiers }: Dashboard) =>
  composite === null && tiers.every((tier) => tier.metrics.length === 0)

const dashboardParts = (dashboard: Dashboard, now: number): Node[] => {
  if (isEmpty(dashboard)) return [emptyState()]
  const { composite, tiers, composite_history } = dashboard
  return [
    composite === null
      ? missingComposite(dashboard)
      : compositePanel(composite, dashboard, state.sources?.rows.length ?? 0),
    tierCards(tiers, composite_history, state.sources?.rows ?? [], now),
  ]
}

const parts = (): Node[] => {
  const now = Date.now()
  const { dashboard, watchlist, sources, scheduler, problem, read_at } = state
  const is_empty = dashboard !== undefined && isEmpty(dashboard)
  return [
    ...(problem ? [problemNotice(problem, read_at, { retry, onToken: takeToken })] : []),
    ...(dashboard ? dashboardParts(dashboard, now) : []),
    ...(watchlist && !is_empty ? [watchlistTable(watchlist, now)] : []),
    ...(sources ? [sourceTable(sources, now)] : []),
    ...(scheduler ? [schedulerTable(scheduler, now)] : []),
    ...(dashboard || problem ? [] : [h("p", { class: "loading" }, "Loading the dashboard\u2026")]),
  ]
}

const statusParts = (): Node[] => {
  const { dashboard, read_at, problem } = state
  const newest = dashboard ? newestDay(dashboard) : ""
  return [
    ...(dashboard?.demo ? [badge("demo", "Demo data", "Generated data, not market data")] : []),
    ...(newest === "" ? [] : [h("span", {}, `Data to ${date(newest)}`)]),
    ...(read_at === undefined ? [] : [h("span", {}, `checked ${clock(read_at)}`)]),
    ...(problem ? [h("span", { class: "failure" }, "out of date")] : []),
  ]
}

const status = h("div", { class: "status-parts" })
fillHeader("Capital pressure", status)

const metric_drawer = drawer(
  (metric_id) => state.sources?.rows.find((row) => row.metric_id === metric_id)?.name,
)

const titleOf = (composite: Composite | null | undefined) =>
  composite
    ? `${signed(composite.z)} ${composite.z_label} \u00b7 Capital pressure`
    : "Capital pressure \u00b7 Almanac"

const render = () => {
  const main = document.querySelector("#main")
  if (main === null) return
  document.title = titleOf(state.dashboard?.composite)
  morphChildren(status, statusParts())
  morphChildren(main, parts())
  mountHistory(state.dashboard?.composite_history ?? [])
}

const announceChange = (result: Result<Dashboard>) => {
  if (result.kind !== "new" || state.dashboard === undefined) return
  const { composite } = result.body
  if (composite === null) announce("Updated.")
  else {
    announce(`Updated: ${meaning(composite)}, ${signed(composite.z)}; ${tallyText(composite)}.`)
  }
}

const scheduleRefresh = (results: readonly Result<object>[]) => {
  const failed = results.find((result) => result.kind === "problem")
  clearTimeout(timer)
  if (failed === undefined) {
    failures = 0
    delete state.problem
    state.read_at = Date.now()
    timer = setTimeout(refresh, refresh_ms)
    return
  }
  const wait = retries_ms[Math.min(failures, retries_ms.length - 1)] ?? refresh_ms
  failures += 1
  state.problem = { ...failed.problem, retry_at: Date.now() + wait }
  timer = setTimeout(refresh, wait)
}

let is_reading = false

const fetchAll = async () => {
  const results = await Promise.all([
    get<Dashboard>("/api/dashboard"),
    get<Watchlist>("/api/watchlist"),
    get<Sources>("/api/sources"),
    get<SchedulerStatus>("/api/scheduler"),
  ])
  const [dashboard, watchlist, sources, scheduler] = results
  announceChange(dashboard)
  if (dashboard.kind !== "problem") state.dashboard = dashboard.body
  if (watchlist.kind !== "problem") state.watchlist = watchlist.body
  if (sources.kind !== "problem") state.sources = sources.body
  if (scheduler.kind !== "problem") state.scheduler = scheduler.body
  scheduleRefresh(results)
  render()
  metric_drawer.refresh()
}

function refresh() {
  if (is_reading) return
  is_reading = true
  void fetchAll().finally(() => {
    is_reading = false
  })
}

function retry() {
  announce("Retrying")
  refresh()
}

function takeToken(token: string) {
  useToken(token)
  refresh()
}

document.addEventListener("visibilitychange", () => {
  const is_old = Date.now() - (state.read_at ?? 0) >= refresh_ms
  if (document.visibilityState === "visible" && is_old) refresh()
})
addEventListener("online", refresh)
addEventListener("offline", refresh)

render()
refresh()
