/** A line chart over dates, with a cursor for mouse, touch and keyboard, and a text alternative. */
import uPlot from "uplot"
import { h, s } from "../element.ts"
import { date, shortDate } from "../format.ts"
import { onTheme } from "../theme.ts"

export interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
  /** Name of the CSS variable with the colour. */
  readonly tone: string
  readonly width?: number
  readonly dash?: readonly number[]
  /** Whether it uses the right axis. */
  readonly is_right?: boolean
  /** Whether the area below is filled. */
  readonly is_filled?: boolean
  readonly format: (value: number) => string
  /** Format of the axis labels, which have little room; the default is `format`. */
  readonly formatShort?: (value: number) => string
}

export interface Drawing {
  readonly label: string
  /** A sentence for screen readers. */
  readonly summary: string
  /** YYYY-MM-DD, ascending. */
  readonly dates: readonly string[]
  readonly lines: readonly Line[]
  /** Horizontal lines; `tone` names a CSS variable. */
  readonly levels?: readonly { readonly at: number; readonly tone: string }[]
  /** Shaded bands behind the lines. */
  readonly zones?: readonly { readonly from: number; readonly to: number; readonly tone: string }[]
  /** Minimum range of the left axis. */
  readonly range?: readonly [number, number]
  readonly height: number
}

export interface Chart {
  readonly element: HTMLElement
  readonly show: (drawing: Drawing) => void
}

const axis_width = 52
const narrow_px = 480
const dash_of_levels = [3, 4]

const variable = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const fontOf = () => `11px ${getComputedStyle(document.body).fontFamily}`

const secondsOf = (iso: string) => Date.parse(iso) / 1000

/** Draws the bands and horizontal lines behind the data. */
const drawBackground = (plot: uPlot, { zones = [], levels = [] }: Drawing) => {
  const { ctx, bbox } = plot
  const y = (value: number) =>
    Math.min(Math.max(plot.valToPos(value, "y", true), bbox.top), bbox.top + bbox.height)
  ctx.save()
  for (const { from, to, tone } of zones) {
    ctx.fillStyle = variable(tone)
    ctx.fillRect(bbox.left, y(to), bbox.width, y(from) - y(to))
  }
  ctx.setLineDash(dash_of_levels.map((length) => length * devicePixelRatio))
  ctx.lineWidth = devicePixelRatio
  for (const { at, tone } of levels) {
    const { min = 0, max = 0 } = plot.scales.y ?? {}
    if (at < min || at > max) continue
    ctx.strokeStyle = variable(tone)
    ctx.beginPath()
    ctx.moveTo(bbox.left, y(at))
    ctx.lineTo(bbox.left + bbox.width, y(at))
    ctx.stroke()
  }
  ctx.restore()
}

const valuesAxis = (scale: "y" | "right", line: Line | undefined): uPlot.Axis => ({
  scale,
  side: scale === "y" ? 3 : 1,
  size: axis_width,
  font: fontOf(),
  stroke: variable("--ink-3"),
  grid: { show: scale === "y", stroke: variable("--line"), width: 1 },
  ticks: { show: false },
  values: (_plot, splits) => splits.map(line?.formatShort ?? line?.format ?? String),
})

const axesOf = ({ lines }: Drawing): uPlot.Axis[] => {
  const right = lines.find((line) => line.is_right)
  const dates: uPlot.Axis = {
    font: fontOf(),
    stroke: variable("--ink-3"),
    size: 38,
    space: 64,
    grid: { show: false },
    ticks: { stroke: variable("--line-2"), size: 4, width: 1 },
  }
  const left = valuesAxis(
    "y",
    lines.find((line) => !line.is_right),
  )
  return right === undefined ? [dates, left] : [dates, left, valuesAxis("right", right)]
}

const seriesOf = ({ label, tone, width = 1.5, dash, is_right, is_filled }: Line): uPlot.Series => ({
  label,
  scale: is_right ? "right" : "y",
  stroke: variable(tone),
  width,
  ...(dash && { dash: [...dash] }),
  ...(is_filled && { fill: variable("--wash") }),
  points: { show: false },
  spanGaps: true,
})

/** Range of an axis: at least the minimum, plus a margin. */
const rangeOf =
  ([least, most]: readonly [number, number]): uPlot.Range.Function =>
  (_plot, low, high) => {
    const [from, to] = [Math.min(low ?? 0, least), Math.max(high ?? 0, most)]
    const room = (to - from) * 0.06
    return [from - room, to + room]
  }

const hasHover = () => matchMedia("(hover: hover)").matches

/** A horizontal swipe moves the cursor; a vertical one scrolls the page (charts.css). */
const followFinger = (plot: uPlot) => {
  const follow = ({ pointerType, offsetX }: PointerEvent) => {
    if (pointerType === "touch") plot.setCursor({ left: offsetX, top: 1 })
  }
  for (const name of ["pointerdown", "pointermove"] as const) {
    plot.over.addEventListener(name, follow)
  }
}

const optionsOf = (
  drawing: Drawing,
  width: number,
  onCursor: (plot: uPlot) => void,
): uPlot.Options => ({
  width,
  height: width < narrow_px ? Math.min(drawing.height, 240) : drawing.height,
  padding: [10, drawing.lines.some((line) => line.is_right) ? 0 : 14, 0, 0],
  tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
  legend: { show: false },
  cursor: {
    y: false,
    drag: { x: false, y: false },
    // Keep the cursor after a touch, because browsers fire mouseleave when it ends.
    bind: { mouseleave: (_plot, _target, leave) => (event) => (hasHover() ? leave(event) : null) },
    points: { size: 7, width: 2, fill: () => variable("--card") },
  },
  scales: {
    x: { time: true },
    ...(drawing.range && { y: { range: rangeOf(drawing.range) } }),
  },
  axes: axesOf(drawing),
  series: [{}, ...drawing.lines.map(seriesOf)],
  hooks: {
    drawClear: [(plot) => drawBackground(plot, drawing)],
    setCursor: [onCursor],
  },
})

/** A sample of the line for the legend. */
export const swatch = (dash: readonly number[] = []): SVGElement =>
  s(
    "svg",
    { class: "swatch", viewBox: "0 0 20 4", "aria-hidden": "true" },
    s("path", { d: "M0 2h20", "stroke-dasharray": dash.join(" ") || null }),
  )

const valueText = (line: Line, index: number) => {
  const value = line.values[index]
  return value === null || value === undefined ? "n/a" : line.format(value)
}

/** The date at the cursor, or the newest, with each line's value. */
const readoutOf = ({ dates, lines }: Drawing, index: number): Node[] => [
  h("span", { class: "at" }, date(dates[index] ?? "")),
  ...lines.map((line) =>
    h(
      "span",
      { class: `value ${line.tone.replace("--", "tone-")}` },
      swatch(line.dash),
      `${line.label} `,
      h("b", {}, valueText(line, index)),
    ),
  ),
]

const tableOf = ({ dates, lines, label }: Drawing): HTMLElement => {
  const rows_max = 260
  const from = Math.max(0, dates.length - rows_max)
  const rows = dates.slice(from).map((day, offset) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, date(day)),
      lines.map((line) => h("td", {}, valueText(line, from + offset))),
    ),
  )
  return h(
    "div",
    { class: "scroll short", role: "region", tabindex: 0, "aria-label": `${label}, values` },
    h(
      "table",
      {},
      h("caption", { class: "visually-hidden" }, `${label}, newest first`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Date"),
          lines.map((line) => h("th", { scope: "col" }, line.label)),
        ),
      ),
      h("tbody", {}, rows.toReversed()),
    ),
  )
}

const step_of: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -21,
  PageUp: 21,
  Home: -Infinity,
  End: Infinity,
}

/** An empty chart; `show` draws. */
export const chart = (): Chart => {
  let drawing: Drawing | undefined
  let plot: uPlot | undefined
  let at = 0
  const readout = h("p", { class: "readout" })
  const plane = h("div", { class: "plane", role: "slider", tabindex: 0 })
  const caption = h("figcaption", { class: "visually-hidden" })
  const table = h("details", { class: "values", ontoggle: () => fillTable() })
  const element = h("figure", { class: "chart" }, caption, readout, plane, table)

  const fillTable = () => {
    const content = drawing && table.open ? tableOf(drawing) : ""
    table.replaceChildren(h("summary", {}, "Show values as a table"), content)
  }
  const showReadout = (index: number) => {
    if (drawing === undefined) return
    at = index
    const day = drawing.dates[index] ?? ""
    const values = drawing.lines.map((line) => `${line.label} ${valueText(line, index)}`)
    plane.setAttribute("aria-valuenow", String(index))
    plane.setAttribute("aria-valuetext", `${shortDate(day, Number.NaN)}: ${values.join(", ")}`)
    readout.replaceChildren(...readoutOf(drawing, index))
  }
  const onCursor = ({ cursor }: uPlot) => {
    if (drawing) showReadout(cursor.idx ?? drawing.dates.length - 1)
  }
  const draw = () => {
    plot?.destroy()
    plot = undefined
    if (drawing === undefined || plane.clientWidth === 0) return
    const data: uPlot.AlignedData = [
      drawing.dates.map(secondsOf),
      ...drawing.lines.map((line) => [...line.values]),
    ]
    plot = new uPlot(optionsOf(drawing, plane.clientWidth, onCursor), data, plane)
    followFinger(plot)
  }
  plane.addEventListener("keydown", (event) => {
    const step = step_of[event.key]
    if (step === undefined || plot === undefined || drawing === undefined) return
    event.preventDefault()
    const index = Math.max(0, Math.min(drawing.dates.length - 1, at + step))
    const seconds = secondsOf(drawing.dates[index] ?? "")
    plot.setCursor({ left: plot.valToPos(seconds, "x"), top: 1 })
    showReadout(index)
  })
  plane.addEventListener("blur", () => plot?.setCursor({ left: -10, top: -10 }))
  let width = 0
  new ResizeObserver(() => {
    if (plane.clientWidth === width) return
    width = plane.clientWidth
    draw()
  }).observe(plane)
  onTheme(draw)

  const show = (next: Drawing) => {
    drawing = next
    plane.setAttribute("aria-label", `${next.label}: move through the dates with the arrow keys`)
    plane.setAttribute("aria-valuemin", "0")
    plane.setAttribute("aria-valuemax", String(next.dates.length - 1))
    caption.textContent = next.summary
    draw()
    showReadout(next.dates.length - 1)
    fillTable()
  }
  return { element, show }
}
