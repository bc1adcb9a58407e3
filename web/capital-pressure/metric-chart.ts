/** Charts of a metric: its indicator or raw values, and its z-score. */

import { h } from "../element.ts"
import { compact, date, short, signed, typeset } from "../format.ts"
import type { MetricDetail, MetricHistory } from "./api.ts"
import { type Chart, chart, type Drawing } from "./chart.ts"

const spans = [
  { years: 1, label: "1 year" },
  { years: 3, label: "3 years" },
  { years: 10, label: "10 years" },
  { years: 0, label: "All" },
] as const
type Years = (typeof spans)[number]["years"]

/** Horizontal lines at these z-scores. */
const bands = [-2, -1, 1, 2] as const
const height = { value: 230, z: 170 } as const

interface Point {
  readonly ts: string
}

/** The points of the last `years` years; all points if it is 0. */
const since = <P extends Point>(points: readonly P[], years: Years): readonly P[] => {
  const last = points.at(-1)?.ts
  if (years === 0 || last === undefined) return points
  const from = `${Number(last.slice(0, 4)) - years}${last.slice(4)}`
  return points.filter(({ ts }) => ts >= from)
}

const summaryOf = (
  what: string,
  points: readonly { readonly ts: string; readonly value: number | null }[],
  format: (value: number) => string,
) => {
  const known = points.flatMap(({ ts, value }) => (value === null ? [] : [{ ts, value }]))
  const [first, last] = [known[0], known.at(-1)]
  if (first === undefined || last === undefined) return `${what} has no values in this period.`
  const values = known.map(({ value }) => value)
  const low = values.reduce((least, value) => Math.min(least, value))
  const high = values.reduce((most, value) => Math.max(most, value))
  return (
    `${what} went from ${format(first.value)} on ${date(first.ts)} to ${format(last.value)} on ` +
    `${date(last.ts)}; lowest ${format(low)}, highest ${format(high)}.`
  )
}

const valueDrawing = (
  label: string,
  points: readonly { readonly ts: string; readonly value: number }[],
): Drawing => ({
  label,
  summary: summaryOf(label, points, compact),
  dates: points.map(({ ts }) => ts),
  lines: [
    {
      label,
      tone: "--ink",
      width: 1.75,
      is_filled: true,
      format: compact,
      formatShort: short,
      values: points.map(({ value }) => value),
    },
  ],
  height: height.value,
})

const zDrawing = (points: MetricDetail["series"]): Drawing => ({
  label: "z-score",
  summary: summaryOf(
    "The z-score",
    points.map(({ ts, z }) => ({ ts, value: z })),
    (value) => signed(value),
  ),
  dates: points.map(({ ts }) => ts),
  lines: [
    {
      label: "z",
      tone: "--ink",
      width: 1.75,
      format: (value) => signed(value),
      values: points.map(({ z }) => z),
    },
  ],
  levels: [
    { at: 0, tone: "--line-2" },
    ...bands.map((at) => ({ at, tone: Math.abs(at) === 2 ? "--ink-3" : "--line-2" })),
  ],
  zones: [{ from: -1, to: 1, tone: "--wash" }],
  range: [-2.2, 2.2],
  height: height.z,
})

type Kind = "indicator" | "raw"

export interface MetricCharts {
  readonly element: HTMLElement
  readonly show: (detail: MetricDetail, history: MetricHistory | undefined) => void
}

const choice = <A extends string | number>(
  name: string,
  legend: string,
  options: readonly { readonly value: A; readonly label: string }[],
  chosen: A,
  onChoice: (value: A) => void,
) =>
  h(
    "fieldset",
    { class: "choice" },
    h("legend", { class: "visually-hidden" }, legend),
    options.map(({ value, label }) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name,
          value,
          checked: value === chosen,
          onchange: () => onChoice(value),
        }),
        h("span", {}, label),
      ),
    ),
  )

const indicatorLabel = ({ indicator_kind, unit }: MetricDetail) =>
  indicator_kind === "yoy" ? "Change over a year, %" : `Value, ${unit}`

/** Two charts over the same time span. */
export const metricCharts = (): MetricCharts => {
  const [values, zs]: [Chart, Chart] = [chart(), chart()]
  const controls = h("div", { class: "controls" })
  const element = h(
    "div",
    { class: "metric-charts" },
    controls,
    values.element,
    h("h3", {}, "z-score", h("small", {}, " with bands at \u00b11 and \u00b12")),
    zs.element,
  )
  let years: Years = 3
  let kind: Kind = "indicator"
  let data: [MetricDetail, MetricHistory | undefined] | undefined

  const draw = () => {
    if (data === undefined) return
    const [detail, history] = data
    const series = since(detail.series, years)
    const raw = history && kind === "raw" ? since(history.points, years) : undefined
    values.show(
      raw
        ? valueDrawing("Raw value", raw)
        : valueDrawing(
            indicatorLabel(detail),
            series.map(({ ts, indicator }) => ({ ts, value: indicator })),
          ),
    )
    zs.show(zDrawing(series))
  }
  const show: MetricCharts["show"] = (detail, history) => {
    if (data?.[0].metric_id !== detail.metric_id) kind = "indicator"
    data = [detail, history]
    const kinds = [
      { value: "indicator", label: typeset("Year on year") },
      { value: "raw", label: "Raw values" },
    ] as const
    controls.replaceChildren(
      choice(
        "span",
        "Span",
        spans.map((span) => ({ value: span.years, label: span.label })),
        years,
        (value) => {
          years = value
          draw()
        },
      ),
      detail.indicator_kind === "yoy" && history
        ? choice("kind", "Series", kinds, kind, (value) => {
            kind = value
            draw()
          })
        : "",
    )
    draw()
  }
  return { element, show }
}
