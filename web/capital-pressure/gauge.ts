/** The composite on a scale from -2 to +2 with named bands. */

import { h, s } from "../element.ts"
import { date, signed } from "../format.ts"
import type { Composite, CompositePoint } from "./api.ts"

/** The bands and their names. Source: market facts, A2.4. */
const bands = [
  { from: -2, to: -1.5, word: "flush", tone: "bull-3" },
  { from: -1.5, to: -0.75, word: "easy", tone: "bull-2" },
  { from: -0.75, to: -0.25, word: "easing", tone: "bull-1" },
  { from: -0.25, to: 0.25, word: "balanced", tone: "neutral-1" },
  { from: 0.25, to: 0.75, word: "tightening", tone: "bear-1" },
  { from: 0.75, to: 1.5, word: "tight", tone: "bear-2" },
  { from: 1.5, to: 2, word: "strained", tone: "bear-3" },
] as const

const limit = 2
/** Business days per month. */
const month_days = 21
const view = { width: 480, bar_top: 26, bar_height: 14 } as const

/** Horizontal position in pixels, clamped to the scale. */
const x = (z: number) => ((Math.max(-limit, Math.min(limit, z)) + limit) / (2 * limit)) * view.width

const bandShapes = (z_label: string) =>
  bands.map(({ from, to, word, tone }) =>
    s(
      "g",
      { class: word === z_label ? "band here" : "band" },
      s("rect", {
        class: tone,
        x: x(from) + 0.75,
        y: view.bar_top,
        height: view.bar_height,
        width: x(to) - x(from) - 1.5,
      }),
      s("text", { x: (x(from) + x(to)) / 2, y: view.bar_top + 30 }, word),
    ),
  )

const rangeShape = (history: readonly CompositePoint[]) => {
  if (history.length < 2) return null
  const zs = history.map((point) => point.z)
  const [low, high] = [x(Math.min(...zs)), x(Math.max(...zs))]
  const y = view.bar_top - 6
  return s("path", { class: "range", d: `M${low} ${y - 3}v6m0-3H${high}m0-3v6` })
}

const needle = (z: number) => {
  const tip = view.bar_top + view.bar_height
  return s(
    "g",
    { class: "needle", transform: `translate(${x(z).toFixed(1)} 0)` },
    s("path", { d: `M0 ${tip + 3}V6` }),
    s("path", { class: "head", d: "M-6 2h12L0 13Z" }),
  )
}

/** "+0.12 on 20 Oct 2026. In 252 days: -0.61 to +0.77." */
export const rangeText = (history: readonly CompositePoint[]): string | null => {
  const month_ago = history.at(-1 - month_days)
  if (month_ago === undefined) return null
  const zs = history.map((point) => point.z)
  const [low, high] = [signed(Math.min(...zs)), signed(Math.max(...zs))]
  return `${signed(month_ago.z)} on ${date(month_ago.ts)}. In ${zs.length} days: ${low} to ${high}.`
}

export const gauge = (composite: Composite, history: readonly CompositePoint[]): HTMLElement => {
  const month_ago = history.at(-1 - month_days)
  const label =
    `Scale from ${signed(-limit)} (flush) to ${signed(limit)} (strained): the composite is at ` +
    `${signed(composite.z)}, ${composite.z_label}.`
  return h(
    "div",
    { class: "scale" },
    s(
      "svg",
      { viewBox: `0 0 ${view.width} 62`, role: "img", "aria-label": label },
      bandShapes(composite.z_label),
      rangeShape(history),
      month_ago &&
        s("circle", { class: "month-before", cx: x(month_ago.z), cy: view.bar_top - 6, r: 3.5 }),
      needle(composite.z),
    ),
    h(
      "div",
      { class: "scale-ends", "aria-hidden": "true" },
      h("span", { class: "bull" }, "easier money"),
      h("span", { class: "bear" }, "more pressure"),
    ),
  )
}
