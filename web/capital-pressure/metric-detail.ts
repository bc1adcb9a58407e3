/** A metric in words: its reading, the reason for its vote, and its parameters. */

import { copyableCommand } from "../command.ts"
import { type Child, h } from "../element.ts"
import { count, date, daysAgo, signed, typeset } from "../format.ts"
import { badge, demoBadge, vote } from "../mark.ts"
import type { MetricDetail } from "./api.ts"

/** The publisher's page about a series; only linked, never fetched. */
const pageOf = ({ source_kind, source_series }: MetricDetail): string | null => {
  if (source_series === null) return null
  if (source_kind === "fred") return `https://fred.stlouisfed.org/series/${source_series}`
  const pages: Readonly<Record<string, string>> = {
    ofr: "https://www.financialresearch.gov/financial-stress-index/",
    cftc: "https://www.cftc.gov/MarketReports/CommitmentsofTraders/index.htm",
    cboe: "https://www.cboe.com/us/indices/dashboard/skew/",
    finra: "https://www.finra.org/rules-guidance/key-topics/margin-accounts/margin-statistics",
    fiscaldata: "https://fiscaldata.treasury.gov/datasets/debt-to-the-penny/",
    fred_derived: "https://fred.stlouisfed.org/",
  }
  return pages[source_kind] ?? null
}

const link = (detail: MetricDetail): Child => {
  const page = pageOf(detail)
  return page === null
    ? detail.source
    : h("a", { href: page, rel: "noreferrer external", target: "_blank" }, detail.source)
}

const years = (amount: number) => (amount === 1 ? "1 year" : `${amount} years`)

const days = (amount: number) => (amount === 1 ? "1 day" : `${count(amount)} days`)

/** Allows a line break after each operator in the series' name. */
const series = (name: string) => name.split(/(?<=[-*/+])/).flatMap((part) => [part, h("wbr")])

const facts = (detail: MetricDetail): readonly (readonly [string, Child])[] => [
  ["Source", link(detail)],
  ["Series", detail.source_series === null ? "none" : h("code", {}, series(detail.source_series))],
  ["Cadence", detail.cadence],
  ["Unit", detail.unit],
  [
    "Indicator",
    detail.indicator_kind === "yoy" ? `change over ${days(detail.indicator_lag)}, in %` : "level",
  ],
  ["z-score window", `${days(detail.indicator_window)} (${years(detail.zscore_years)})`],
  ["Comparison lag", detail.indicator_lag === 0 ? "none" : days(detail.indicator_lag)],
  ["Publication lag", days(detail.publication_lag)],
  [
    "Higher is",
    detail.direction_kind === "higher_bearish"
      ? "bearish: more pressure"
      : "bullish: less pressure",
  ],
  ["In the composite", detail.include_in_composite ? "yes, one vote" : "no, a gauge"],
  ["Observations", count(detail.obs_count)],
]

/** Explains why the vote's z-score has the opposite sign if low values mean pressure. */
const sign_note = "Votes reverse the sign of this z-score, so that positive means pressure."

const noReading = (detail: MetricDetail) =>
  detail.source_kind === "none"
    ? h("p", { class: "hint" }, "No reading: this metric has no free source.")
    : h(
        "div",
        { class: "hint" },
        h("p", {}, "No reading: this metric has not been fetched. Fetch it:"),
        copyableCommand(`npm run almanac -- ingest --metric ${detail.metric_id}`),
      )

const readingOf = (
  { reading, include_in_composite, direction_kind }: MetricDetail,
  now: number,
): readonly Child[] =>
  reading === null
    ? []
    : [
        h(
          "p",
          { class: "figure" },
          h("span", { class: "number" }, typeset(reading.value)),
          h("span", { class: `delta ${reading.delta_class}` }, typeset(reading.delta)),
          h(
            "span",
            { class: `z ${reading.z_class}` },
            reading.z === null ? "z n/a" : `z ${signed(reading.z)}`,
            h("span", { class: "z-word" }, reading.z_label),
          ),
        ),
        h(
          "p",
          { class: "age" },
          `As of ${date(reading.as_of)}, ${daysAgo(reading.as_of, now)}`,
          !include_in_composite && badge("gauge", "Gauge", "Shown, not counted in the composite"),
          reading.stale && badge("stale", "Stale", "Older than its cadence allows"),
          reading.demo && demoBadge(),
        ),
        h(
          "p",
          { class: `reason ${reading.vote.direction}` },
          vote(reading.vote.direction),
          h(
            "span",
            {},
            `${typeset(reading.vote.reason)}.`,
            direction_kind === "higher_bullish" && h("small", {}, sign_note),
          ),
        ),
      ]

/** The contents of the drawer, with an empty container for the charts. */
export const detailParts = (detail: MetricDetail, now: number): Node[] => [
  h(
    "div",
    { class: "drawer-reading" },
    detail.reading === null ? noReading(detail) : readingOf(detail, now),
  ),
  h("p", { class: "description" }, detail.description),
  h("div", { id: "metric-charts", "data-island": "", hidden: detail.series.length === 0 }),
  h(
    "dl",
    { class: "facts" },
    facts(detail).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  ),
]
