/** Eight healthcare stocks compared with the operator's targets and the sector fund. */

import { h } from "../element.ts"
import { daysAgo, percent, price, shortDate } from "../format.ts"
import { demoBadge } from "../mark.ts"
import { type Column, table } from "../table.ts"
import type { Direction, Watchlist } from "./api.ts"
import { sparkline } from "./sparkline.ts"

type Row = Watchlist["rows"][number]

const none = () =>
  h("span", { class: "none" }, "\u2013", h("span", { class: "visually-hidden" }, "none"))

const toneOf = (change: number | null): Direction => {
  if (change === null || Math.abs(change) < 0.0005) return "neutral"
  return change > 0 ? "bull" : "bear"
}

const change = (fraction: number | null) =>
  fraction === null ? none() : h("span", { class: toneOf(fraction) }, percent(fraction))

/** Relative gain from the price to the target. */
const toTarget = ({ price: now, target }: Row) =>
  now === null || now <= 0 || target <= 0 ? null : target / now - 1

const columnsOf = (benchmark: string, now: number): readonly Column<Row>[] => [
  {
    title: "Name",
    cell: ({ ticker, name, sub, demo }) => [
      h("b", {}, ticker),
      " ",
      name,
      demo && demoBadge(),
      h("small", {}, sub),
    ],
  },
  { title: "Price", is_number: true, cell: (row) => (row.price ? price(row.price) : none()) },
  { title: "30 days", is_number: true, cell: (row) => change(row.return_30d) },
  {
    title: `vs ${benchmark}`,
    hint: `Return over 30 days minus the return of ${benchmark}`,
    is_number: true,
    cell: (row) => change(row.return_30d_relative),
  },
  {
    title: "30 closes",
    class: "line",
    cell: (row) => sparkline(row.sparkline, toneOf(row.return_30d)),
  },
  {
    title: "Target",
    is_number: true,
    cell: (row) => (row.target > 0 ? price(row.target) : "not set"),
  },
  {
    title: "To target",
    is_number: true,
    cell: (row) => {
      const gain = toTarget(row)
      return gain === null ? none() : percent(gain)
    },
  },
  { title: "Fwd P/E", is_number: true, cell: (row) => row.fwd_pe },
  { title: "Status", cell: (row) => row.status },
  {
    title: "As of",
    class: "when",
    cell: ({ as_of }) =>
      as_of === null ? none() : [shortDate(as_of, now), h("small", {}, daysAgo(as_of, now))],
  },
]

export const watchlistTable = ({ rows, benchmark }: Watchlist, now: number): HTMLElement =>
  table({
    id: "watchlist",
    title: "Watchlist",
    caption: `Watchlist: price, returns against ${benchmark}, and the operator's targets`,
    note: "Prices in USD. Targets and forward P/E come from watchlist.json.",
    columns: columnsOf(benchmark, now),
    rows,
    keyOf: (row) => row.ticker,
  })
