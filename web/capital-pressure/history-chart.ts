/** The composite's last 252 business days, with the index and, on request, the tiers. */

import { copyableCommand } from "../command.ts"
import { h } from "../element.ts"
import { compact, date, signed } from "../format.ts"
import type { CompositePoint, TierCard } from "./api.ts"
import { type Chart, chart, type Line, swatch } from "./chart.ts"

const height = 336
/** Dash patterns distinguish the tiers without colour. */
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]] as const
/** Below this absolute value the composite is balanced. Source: market facts, A2.4. */
const balanced = 0.25

/** The index plotted with the composite. Source: market facts, A3. */
const index_name = "S&P 500"

const visible_lines = new Set<string>(["index"])
const choices = [
  { id: "index", label: index_name, tone: "--index" },
  { id: "1", label: "Tier 1", tone: "--tier-1" },
  { id: "2", label: "Tier 2", tone: "--tier-2" },
  { id: "3", label: "Tier 3", tone: "--tier-3" },
  { id: "4", label: "Tier 4", tone: "--tier-4" },
] as const

let history_chart: Chart | undefined

const tierLine = (history: readonly CompositePoint[], tier: 1 | 2 | 3 | 4): Line => ({
  label: `Tier ${tier}`,
  tone: `--tier-${tier}`,
  width: 1.25,
  dash: dashes[tier - 1] ?? [],
  values: history.map((point) => point.tier_zs[`${tier}`] ?? null),
  format: (value) => signed(value),
})

const linesOf = (history: readonly CompositePoint[]): Line[] => [
  ...(visible_lines.has("index")
    ? [
        {
          label: index_name,
          tone: "--index",
          width: 1.25,
          is_right: true,
          values: history.map((point) => point.index_close),
          format: compact,
        },
      ]
    : []),
  ...([1, 2, 3, 4] as const)
    .filter((tier) => visible_lines.has(String(tier)))
    .map((tier) => tierLine(history, tier)),
  {
    label: "Composite",
    tone: "--ink",
    width: 2.25,
    values: history.map((point) => point.z),
    format: (value) => signed(value),
  },
]

const summaryOf = (history: readonly CompositePoint[]) => {
  const [first, last] = [history[0], history.at(-1)]
  if (first === undefined || last === undefined) return ""
  const zs = history.map((point) => point.z)
  return (
    `The composite over ${history.length} business days went from ${signed(first.z)} on ` +
    `${date(first.ts)} to ${signed(last.z)} on ${date(last.ts)}; its lowest was ` +
    `${signed(Math.min(...zs))}, its highest ${signed(Math.max(...zs))}.`
  )
}

const draw = (history: readonly CompositePoint[]) => {
  history_chart?.show({
    label: "Composite history",
    summary: summaryOf(history),
    dates: history.map((point) => point.ts),
    lines: linesOf(history),
    levels: [{ at: 0, tone: "--line-2" }],
    zones: [
      { from: balanced, to: 9, tone: "--bear-wash" },
      { from: -9, to: -balanced, tone: "--bull-wash" },
    ],
    range: [-0.5, 0.5],
    height,
  })
}

const toggle = (id: string, history: readonly CompositePoint[]) => (event: Event) => {
  if (event.target instanceof HTMLInputElement && event.target.checked) visible_lines.add(id)
  else visible_lines.delete(id)
  draw(history)
}

const toggles = (history: readonly CompositePoint[], tiers: readonly TierCard[]) =>
  h(
    "fieldset",
    { class: "toggles" },
    h("legend", { class: "visually-hidden" }, "Lines in addition to the composite"),
    choices.map(({ id, label, tone }) =>
      h(
        "label",
        {
          class: tone.replace("--", "tone-"),
          title: tiers.find(({ tier }) => String(tier) === id)?.name,
        },
        h("input", {
          type: "checkbox",
          name: "line",
          value: id,
          checked: visible_lines.has(id),
          onchange: toggle(id, history),
        }),
        swatch(id === "index" ? [] : dashes[Number(id) - 1]),
        label,
      ),
    ),
  )

/** The title includes the last day, because the history may end long ago. */
const titleOf = (history: readonly CompositePoint[]) => {
  const last = history.at(-1)
  return last === undefined ? "History" : `${history.length} business days to ${date(last.ts)}`
}

/** The chart's container; `mountHistory` inserts the chart. */
export const historyPlace = (history: readonly CompositePoint[], tiers: readonly TierCard[]) =>
  h(
    "div",
    { class: "history", "data-key": history.length === 0 ? "history-none" : "history" },
    h(
      "div",
      { class: "history-head" },
      h("h3", {}, titleOf(history)),
      history.length > 0 && toggles(history, tiers),
    ),
    history.length > 0
      ? h("div", { id: "history-chart", "data-island": "" })
      : h(
          "div",
          { class: "hint" },
          h("p", {}, "No history. Compute it from the ingested values:"),
          copyableCommand("npm run almanac -- backfill-composite"),
        ),
  )

let last_drawn: readonly CompositePoint[] | undefined

/** Draws the chart into its container unless the history is unchanged. */
export const mountHistory = (history: readonly CompositePoint[]): void => {
  const place = document.querySelector("#history-chart")
  if (place === null) return
  history_chart ??= chart()
  if (!place.contains(history_chart.element)) {
    place.replaceChildren(history_chart.element)
    last_drawn = undefined
  }
  if (last_drawn === history) return
  last_drawn = history
  draw(history)
}
