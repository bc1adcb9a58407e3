/** Replaces the composite if there is none today: explains why and shows past values. */

import { h } from "../element.ts"
import { date } from "../format.ts"
import type { Dashboard } from "./api.ts"
import { historyPlace } from "./history-chart.ts"

/** The newest date of any reading; empty if there are no readings. */
export const newestDay = ({ tiers }: Dashboard) =>
  tiers
    .flatMap((tier) => tier.metrics.map((reading) => reading.as_of))
    .toSorted()
    .at(-1) ?? ""

/** Why there is no composite: values too old, history too short, or both. */
const reasonOf = (dashboard: Dashboard): readonly [headline: string, text: string] => {
  const { tiers, composite_history } = dashboard
  const voting = tiers.flatMap(({ metrics }) => metrics.filter((one) => one.include_in_composite))
  if (voting.length > 0 && voting.every(({ stale }) => stale)) {
    return [
      "All values are too old for a composite.",
      `The newest value is from ${date(newestDay(dashboard))}. Run an ingest to fetch newer ones.`,
    ]
  }
  if (composite_history.length > 0) {
    return [
      "No composite today.",
      "Each metric is too old to count, or its history is too short for a z-score. " +
        "Run an ingest to fetch newer values.",
    ]
  }
  return [
    "Not enough history for a composite.",
    "A z-score needs one to four years of a metric's values.",
  ]
}

/** Omits the history if it is empty, because no composite could have been computed. */
export const missingComposite = (dashboard: Dashboard): HTMLElement => {
  const { tiers, composite_history } = dashboard
  const [headline, text] = reasonOf(dashboard)
  return h(
    "section",
    {
      class: "composite none",
      "aria-labelledby": "composite-title",
      "data-key": "composite-none",
    },
    h(
      "div",
      { class: "reading" },
      h("p", { class: "eyebrow" }, "Composite"),
      h("h2", { id: "composite-title", class: "headline" }, headline),
      h("p", {}, text),
    ),
    composite_history.length > 0 && historyPlace(composite_history, tiers),
  )
}
