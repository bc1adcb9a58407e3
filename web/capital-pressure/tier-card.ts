/** A tier: its average, its votes, and a tile per metric. */

import { h, s } from "../element.ts"
import { daysAgo, shortDate, signed, typeset } from "../format.ts"
import { badge, demoBadge, mark, vote } from "../mark.ts"
import type { CompositePoint, Direction, Reading, SourceRow, TierCard } from "./api.ts"
import { sparkline } from "./sparkline.ts"

/** Absolute value below which an average is neutral, as for the z-scores of metrics. */
const neutral_below = 0.25

const toneOf = (z: number | null): Direction => {
  if (z === null || Math.abs(z) < neutral_below) return "neutral"
  return z > 0 ? "bear" : "bull"
}

const z_bar_max = 2

/** A bar from zero to the average, on the composite's scale. */
const averageBar = (z: number | null) => {
  const middle = 100
  const length = z === null ? 0 : (Math.min(Math.abs(z), z_bar_max) / z_bar_max) * middle
  const left = z !== null && z < 0 ? middle - length : middle
  return s(
    "svg",
    {
      class: "average-bar",
      viewBox: "0 0 200 6",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    s("rect", { class: "ground", x: 0, y: 0, width: 200, height: 6 }),
    s("rect", { class: toneOf(z), x: left.toFixed(1), y: 0, width: length.toFixed(1), height: 6 }),
    s("rect", { class: "middle", x: middle - 0.5, y: 0, width: 1, height: 6 }),
  )
}

const votesOf = (metrics: readonly Reading[]) => {
  const voting = metrics.filter((one) => one.include_in_composite && !one.stale)
  return h(
    "span",
    { class: "votes" },
    (["bear", "neutral", "bull"] as const).map((direction) => {
      const amount = voting.filter((one) => one.vote.direction === direction).length
      return h(
        "span",
        { class: `vote ${direction}` },
        mark(direction),
        String(amount),
        h("span", { class: "visually-hidden" }, ` ${direction} `),
      )
    }),
  )
}

const badgesOf = ({ include_in_composite, stale, demo }: Reading) => [
  !include_in_composite &&
    badge("gauge", "Gauge", "Shown, not counted in the composite or the tally"),
  stale && badge("stale", "Stale", "Older than its cadence allows, so it is not counted"),
  demo && demoBadge(),
]

/** The address of a metric's details. */
export const metricPath = (metric_id: string): string => `#metric=${metric_id}`

const tile = (reading: Reading, now: number) =>
  h(
    "li",
    { "data-key": reading.metric_id, class: reading.stale ? "tile is-stale" : "tile" },
    h(
      "a",
      { href: metricPath(reading.metric_id), title: reading.vote.reason },
      h("span", { class: "name" }, reading.name),
      h("span", { class: "reading-value" }, typeset(reading.value)),
      h("span", { class: `delta ${reading.delta_class}` }, typeset(reading.delta)),
      sparkline(reading.sparkline, reading.vote.direction),
      h(
        "span",
        { class: `z ${reading.z_class}` },
        reading.z === null ? "z n/a" : `z ${signed(reading.z)}`,
        h("span", { class: "z-word" }, reading.z_label),
      ),
      h(
        "span",
        { class: "foot" },
        vote(reading.vote.direction),
        h(
          "span",
          { class: "age" },
          `${shortDate(reading.as_of, now)} \u00b7 ${daysAgo(reading.as_of, now)}`,
          badgesOf(reading),
        ),
      ),
    ),
  )

/** A metric without data: a stub, or not ingested yet. */
const missingTile = (row: SourceRow) =>
  h(
    "li",
    { "data-key": row.metric_id, class: "tile is-absent" },
    h(
      "a",
      { href: metricPath(row.metric_id), title: row.note },
      h("span", { class: "name" }, row.name),
      h("span", { class: "why" }, row.status === "stub" ? "no free source" : "no data yet"),
    ),
  )

const trendOf = (history: readonly CompositePoint[], tier: TierCard["tier"]) =>
  history.flatMap((point) => point.tier_zs[`${tier}`] ?? [])

const head = ({ tier, name, tag, cadence, avg_z, metrics }: TierCard, trend: readonly number[]) =>
  h(
    "header",
    {},
    h("p", { class: "eyebrow" }, `Tier ${tier} \u00b7 ${tag}`),
    h("h3", { id: `tier-${tier}` }, name),
    h(
      "div",
      { class: "average" },
      h(
        "span",
        { class: `number ${toneOf(avg_z)}` },
        avg_z === null ? "n/a" : signed(avg_z),
        h("span", { class: "visually-hidden" }, " average z, positive is pressure"),
      ),
      votesOf(metrics),
      sparkline(trend, toneOf(avg_z)),
    ),
    averageBar(avg_z),
    h("p", { class: "cadence" }, cadence),
  )

const tierCard = (
  card: TierCard,
  history: readonly CompositePoint[],
  missing: readonly SourceRow[],
  now: number,
) =>
  h(
    "article",
    { class: "tier", "aria-labelledby": `tier-${card.tier}`, "data-key": `tier-${card.tier}` },
    head(card, trendOf(history, card.tier)),
    h(
      "ul",
      { class: "tiles" },
      card.metrics.map((reading) => tile(reading, now)),
      missing.map(missingTile),
    ),
  )

/** The cards of all tiers. `sources` includes the metrics without a reading. */
export const tierCards = (
  tiers: readonly TierCard[],
  history: readonly CompositePoint[],
  sources: readonly SourceRow[],
  now: number,
): HTMLElement => {
  const with_reading = new Set(tiers.flatMap((card) => card.metrics.map((one) => one.metric_id)))
  return h(
    "section",
    { class: "tiers", "aria-labelledby": "tiers-title", "data-key": "tiers" },
    h("h2", { id: "tiers-title" }, "Four tiers"),
    h(
      "div",
      { class: "cards" },
      tiers.map((card) => {
        const missing = sources.filter(
          (row) => row.tier === card.tier && !with_reading.has(row.metric_id),
        )
        return tierCard(card, history, missing, now)
      }),
    ),
  )
}
