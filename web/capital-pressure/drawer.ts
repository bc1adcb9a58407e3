/** The details of a metric in a drawer: `#metric=<id>` opens it, Esc closes it. */

import { h, morphChildren } from "../element.ts"
import type { MetricDetail, MetricHistory } from "./api.ts"
import { get, type Result } from "./client.ts"
import { type MetricCharts, metricCharts } from "./metric-chart.ts"
import { detailParts } from "./metric-detail.ts"

const failure = (result: Result<object>, metric_id: string): Node => {
  const status = result.kind === "problem" ? result.problem.status : 0
  const text =
    status === 404
      ? `Metric ${metric_id} does not exist.`
      : status === 0
        ? "The server cannot be reached. The page retries every minute."
        : `The request failed (${status}). The page retries every minute.`
  return h("p", { class: "hint", role: "alert" }, text)
}

const metricInAddress = () => /^#metric=([\w-]+)$/.exec(location.hash)?.[1]

/** The empty dialog; the browser traps and restores the focus. */
const panel = () => {
  const title = h("h2", { id: "drawer-title" })
  const eyebrow = h("p", { class: "eyebrow" })
  const body = h("div", { class: "drawer-body" })
  const dialog = h(
    "dialog",
    { class: "drawer", "aria-labelledby": "drawer-title" },
    h(
      "div",
      { class: "drawer-head" },
      h("div", {}, eyebrow, title),
      h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close"),
    ),
    body,
  )
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close()
  })
  document.body.append(dialog)
  return { dialog, title, eyebrow, body }
}

/** Requests the details, and the raw values unless they equal the indicator. */
const fetchMetric = async (metric_id: string) => {
  const path = `/api/metrics/${encodeURIComponent(metric_id)}`
  const detail = await get<MetricDetail>(`${path}/detail`)
  if (detail.kind === "problem" || detail.body.indicator_kind === "level") return { detail }
  const history = await get<MetricHistory>(`${path}/history`)
  return history.kind === "problem" ? { detail } : { detail, history: history.body }
}

/** The drawer; `nameOf` returns a metric's name before its details have loaded. */
export const drawer = (nameOf: (metric_id: string) => string | undefined) => {
  const { dialog, title, eyebrow, body } = panel()
  let charts: MetricCharts | undefined
  let current: string | undefined
  let opened_for: string | undefined
  let drawn_metric: string | undefined

  const draw = (detail: MetricDetail, history: MetricHistory | undefined) => {
    eyebrow.textContent = `Tier ${detail.tier} \u00b7 ${detail.cadence}`
    title.textContent = detail.name
    morphChildren(body, detailParts(detail, Date.now()))
    if (detail.series.length === 0) return
    charts ??= metricCharts()
    const place = document.querySelector("#metric-charts")
    if (!place?.contains(charts.element)) place?.replaceChildren(charts.element)
    charts.show(detail, history)
  }
  /** `is_refresh`: a refresh, which redraws only if the response changed. */
  const load = async (metric_id: string, is_refresh: boolean) => {
    const { detail, history } = await fetchMetric(metric_id)
    if (current !== metric_id) return
    if (detail.kind === "problem") {
      if (!is_refresh) body.replaceChildren(failure(detail, metric_id))
      return
    }
    if (drawn_metric !== metric_id || detail.kind === "new") draw(detail.body, history)
    drawn_metric = metric_id
  }
  const open = (metric_id: string) => {
    eyebrow.textContent = "Metric"
    title.textContent = nameOf(metric_id) ?? metric_id
    body.replaceChildren(h("p", { class: "loading" }, "Loading\u2026"))
    if (!dialog.open) {
      opened_for = metric_id
      dialog.showModal()
    }
    dialog.scrollTop = 0
    drawn_metric = undefined
    void load(metric_id, false)
  }
  const followAddress = () => {
    const metric_id = metricInAddress()
    if (metric_id === current) return
    current = metric_id
    if (metric_id === undefined) dialog.close()
    else open(metric_id)
  }
  dialog.addEventListener("close", () => {
    current = undefined
    if (metricInAddress() !== undefined)
      history.pushState(null, "", location.pathname + location.search)
    // A deep link leaves no focus to restore, so focus the metric's tile.
    const focused = document.activeElement
    const tile = document.querySelector<HTMLElement>(`.tile a[href="#metric=${opened_for}"]`)
    if (focused === document.body || dialog.contains(focused)) tile?.focus()
  })
  addEventListener("hashchange", followAddress)

  /** Opens the metric in the address, or refreshes the open one. */
  const refresh = () => {
    if (current === undefined) followAddress()
    else void load(current, true)
  }
  return { refresh }
}
