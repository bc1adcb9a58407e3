/** The composite: its meaning, scale, votes and history. */

import { type Child, h, s } from "../element.ts"
import { meaning, signed, tallyText, voteWord, votingText } from "../format.ts"
import { mark } from "../mark.ts"
import type { Composite, Dashboard, Direction, Tally } from "./api.ts"
import { gauge, rangeText } from "./gauge.ts"
import { historyPlace } from "./history-chart.ts"

/** Pressure first, unlike on the scales, because lists are read from the top. */
const order: readonly Direction[] = ["bear", "neutral", "bull"]

/** One rectangle per vote, so that they can be counted. */
const tallyBar = (tally: Tally) => {
  const votes = order.flatMap((direction) => Array<Direction>(tally[direction]).fill(direction))
  const step = 480 / Math.max(1, votes.length)
  return s(
    "svg",
    {
      class: "tally-bar",
      viewBox: "0 0 480 10",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    votes.map((direction, index) =>
      s("rect", {
        class: direction,
        x: (index * step + 1).toFixed(2),
        y: 0,
        width: (step - 2).toFixed(2),
        height: 10,
      }),
    ),
  )
}

const tallyList = (tally: Tally) =>
  h(
    "ul",
    { class: "tally-list" },
    order.map((direction) =>
      h(
        "li",
        { class: direction },
        mark(direction),
        h("b", {}, tally[direction]),
        ` ${voteWord[direction].toLowerCase()}`,
      ),
    ),
  )

/** The tiers with the most and the least pressure. */
const driversOf = ({ tiers }: Dashboard): Child => {
  const known = tiers
    .flatMap(({ name, avg_z }) => (avg_z === null ? [] : [{ name, avg_z }]))
    .toSorted((one, other) => other.avg_z - one.avg_z)
  const [most, least] = [known[0], known.at(-1)]
  if (most === undefined || least === undefined || most === least) return null
  return [
    "Most pressure: ",
    h("b", {}, `${most.name} ${signed(most.avg_z)}`),
    ", least: ",
    h("b", {}, `${least.name} ${signed(least.avg_z)}`),
    ".",
  ]
}

/** Number of metrics that do not vote because they are stale. */
const countStale = ({ tiers }: Dashboard) =>
  tiers.flatMap(({ metrics }) => metrics.filter((one) => one.stale && one.include_in_composite))
    .length

const reading = (composite: Composite, dashboard: Dashboard, metrics: number) =>
  h(
    "div",
    { class: "reading" },
    h("p", { class: "eyebrow" }, "Composite"),
    h(
      "h2",
      { id: "composite-title", class: "headline" },
      h("span", { class: composite.sign_class }, `${meaning(composite)}:`),
      ` ${tallyText(composite)}.`,
    ),
    h(
      "p",
      { class: "figure" },
      h("span", { class: `number ${composite.sign_class}` }, signed(composite.z)),
      h("span", { class: "word" }, composite.z_label),
      h("span", { class: "before" }, rangeText(dashboard.composite_history)),
    ),
    gauge(composite, dashboard.composite_history),
    h(
      "div",
      { class: "tally" },
      tallyBar(composite.tally),
      tallyList(composite.tally),
      h("p", { class: "counted" }, votingText(composite, metrics, countStale(dashboard))),
    ),
    h("p", { class: "drivers" }, driversOf(dashboard)),
    h(
      "p",
      { class: "method" },
      "The composite is the mean of the average z-scores of the four tiers, signed so that " +
        "positive means pressure. Near zero, markets are in their usual range.",
    ),
  )

/** `metrics`: the total number of metrics; 0 if unknown. */
export const compositePanel = (
  composite: Composite,
  dashboard: Dashboard,
  metrics: number,
): HTMLElement =>
  h(
    "section",
    { class: "composite", "aria-labelledby": "composite-title", "data-key": "composite" },
    reading(composite, dashboard, metrics),
    historyPlace(dashboard.composite_history, dashboard.tiers),
  )
