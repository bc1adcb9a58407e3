/**
 * The watchlist: eight healthcare names with the operator's target prices.
 *
 * Source: document 3 §2 A WatchlistOut; market facts, A3.
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

export const Ticker = Schema.Literals([
  "UNH",
  "LLY",
  "JNJ",
  "ABBV",
  "MRK",
  "ISRG",
  "TMO",
  "CVS",
] as const)
export type Ticker = typeof Ticker.Type

export interface WatchlistName {
  readonly ticker: Ticker
  readonly name: string
  /** Its sub-industry. */
  readonly sub: string
}

export const watchlist: ReadonlyArray<WatchlistName> = [
  { ticker: "UNH", name: "UnitedHealth Group", sub: "Managed care" },
  { ticker: "LLY", name: "Eli Lilly", sub: "Pharmaceuticals, metabolic" },
  { ticker: "JNJ", name: "Johnson & Johnson", sub: "Pharmaceuticals and devices" },
  { ticker: "ABBV", name: "AbbVie", sub: "Immunology" },
  { ticker: "MRK", name: "Merck & Co.", sub: "Oncology and vaccines" },
  { ticker: "ISRG", name: "Intuitive Surgical", sub: "Robotic surgery" },
  { ticker: "TMO", name: "Thermo Fisher Scientific", sub: "Life science tools" },
  { ticker: "CVS", name: "CVS Health", sub: "Pharmacy and benefits" },
]

/** The Health Care Select Sector fund, the benchmark of their returns. */
export const benchmark = "XLV"

/** An entry of the operator's file; `fwd_pe` is null if not set. Prices are in USD. */
export const WatchlistTarget = Schema.Struct({
  ticker: Ticker,
  target: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
  fwd_pe: Schema.NullOr(Schema.Finite),
  set_on: Schema.NullOr(CalendarDate),
})
export type WatchlistTarget = typeof WatchlistTarget.Type

/** Replaces the whole list. */
export const SetWatchlist = message("SetWatchlist", {
  targets: Schema.Array(WatchlistTarget).check(Schema.isMaxLength(watchlist.length)),
  demo: Schema.Boolean,
})

export const WatchlistCommand = Schema.Union([SetWatchlist])
export type WatchlistCommand = typeof WatchlistCommand.Type
