/** Each metric's source, the age of its data, and the last error. */

import { h } from "../element.ts"
import { count, date, daysAgo, relativeTime, time } from "../format.ts"
import { badge, demoBadge } from "../mark.ts"
import { type Column, table } from "../table.ts"
import type { SourceRow, Sources } from "./api.ts"
import { metricPath } from "./tier-card.ts"

type SourceStatus = "failing" | "stub" | "waiting" | "live"

const statusOf = ({ status, last_error, last_ingested_at }: SourceRow): SourceStatus => {
  if (status === "stub") return "stub"
  if (last_error !== null) return "failing"
  return last_ingested_at === null ? "waiting" : "live"
}

const labels: Readonly<Record<SourceStatus, string>> = {
  failing: "failing",
  stub: "stub",
  waiting: "not fetched yet",
  live: "live",
}

const statusMark = (row: SourceRow) =>
  h("span", { class: `standing ${statusOf(row)}` }, labels[statusOf(row)])

const none = () => h("span", { class: "none" }, "never")

const remark = ({ last_error, note }: SourceRow) => [
  last_error !== null && h("span", { class: "failure" }, last_error),
  note !== null && h("span", { class: "remark" }, note),
]

const columnsOf = (now: number): readonly Column<SourceRow>[] => [
  {
    title: "Metric",
    cell: ({ metric_id, name, demo }) => [
      h("a", { href: metricPath(metric_id) }, name),
      demo && demoBadge(),
    ],
  },
  { title: "Status", cell: statusMark },
  {
    title: "Newest value",
    class: "when",
    cell: ({ last_observation: day }) =>
      day === null ? none() : [date(day), h("small", {}, ` \u00b7 ${daysAgo(day, now)}`)],
  },
  {
    title: "Last fetched",
    class: "when",
    cell: ({ last_ingested_at: at }) =>
      at === null ? none() : h("span", { title: time(at) }, relativeTime(at, now)),
  },
  { title: "Values", is_number: true, cell: (row) => count(row.obs_count) },
  { title: "Tier", class: "centre", cell: (row) => row.tier },
  { title: "Source", class: "when", cell: (row) => row.source },
  { title: "Cadence", class: "when", cell: (row) => row.cadence },
  { title: "Notes", class: "text", cell: remark },
]

const noteOf = (rows: Sources["rows"]) => {
  const failing = rows.filter((row) => statusOf(row) === "failing").length
  const live = rows.filter((row) => row.status === "live").length
  return [
    `${live} of ${rows.length} metrics have a free source. `,
    failing > 0 &&
      badge("error", `${failing} failing`, "Values from earlier fetches are still shown"),
  ]
}

export const sourceTable = ({ rows }: Sources, now: number): HTMLElement =>
  table({
    id: "sources",
    title: "Sources",
    caption: "Each metric's source, its status, age, number of values and last error",
    note: noteOf(rows),
    columns: columnsOf(now),
    rows,
    keyOf: (row) => row.metric_id,
    rowClass: (row) => `is-${statusOf(row)}`,
  })
