/**
 * The watchlist: eight healthcare names against the operator's targets and the sector's fund.
 *
 * Source: document 3 §2 A WatchlistOut; market facts, A3.
 */
import type { Watchlist } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import { benchmark, watchlist } from "#schemas/capital-pressure/watchlist.ts"
import { roundedFraction } from "./formatting.ts"
import { lastIndexUntil } from "./point-in-time.ts"
import type { PriceSeries, Store } from "./store.ts"

const return_days = 30
const sparkline_points = 30
/** Maximum age of a close relative to the requested day: longer than any holiday. */
const close_age_days_max = 10
const below_target_max = 0.95
const above_target_min = 1.05

/** One row per name, in the registry's order, with or without prices. */
export const watchlistOf = ({ prices, targets, feeds }: Store): Watchlist => {
  const demo = ["prices", "watchlist"].some((id) => feeds.get(id)?.demo ?? false)
  return {
    benchmark,
    rows: watchlist.map(({ ticker, name, sub }) => {
      const set = targets.find((one) => one.ticker === ticker)
      const series = prices.get(ticker)
      const price = series?.close.at(-1) ?? null
      const last = series?.days.at(-1)
      const target = set?.target ?? 0
      return {
        ticker,
        name,
        sub,
        price,
        target,
        fwd_pe: peText(set?.fwd_pe ?? null),
        status: statusOf(price, target),
        ...returnsOf(series, prices.get(benchmark)),
        sparkline: Array.from(series?.close.slice(-sparkline_points) ?? []),
        as_of: last === undefined ? null : dateOf(last),
        demo,
      }
    }),
  }
}

const peText = (fwd_pe: number | null) => (fwd_pe === null ? "n/a" : `${fwd_pe.toFixed(1)}x`)

/** A target of 0 is unset. */
const statusOf = (price: number | null, target: number): string => {
  if (price === null) return "no price"
  if (target === 0) return "no target"
  const ratio = price / target
  if (ratio < below_target_max) return "below target"
  return ratio > above_target_min ? "above target" : "near target"
}

interface Close {
  readonly day: number
  readonly adjusted: number
}

/** The last close up to this day, if it is recent enough. */
const closeAsOf = (series: PriceSeries | undefined, day: number): Close | undefined => {
  if (series === undefined) return undefined
  const index = lastIndexUntil(series.days, day)
  const [found, adjusted] = [series.days[index], series.adjusted[index]]
  if (found === undefined || adjusted === undefined) return undefined
  return day - found > close_age_days_max ? undefined : { day: found, adjusted }
}

/** The adjusted close of exactly this day. */
const adjustedOn = (series: PriceSeries | undefined, day: number): number | undefined => {
  const close = closeAsOf(series, day)
  return close?.day === day ? close.adjusted : undefined
}

interface Returns {
  readonly return_30d: number | null
  readonly return_30d_relative: number | null
}

/**
 * Returns over the 30 calendar days to the name's last close. The fund's return covers the same two
 * dates: without a close on one of them there is no comparison.
 */
const returnsOf = (series: PriceSeries | undefined, fund: PriceSeries | undefined): Returns => {
  const none = { return_30d: null, return_30d_relative: null }
  const end = closeAsOf(series, series?.days.at(-1) ?? Number.NaN)
  const start = end && closeAsOf(series, end.day - return_days)
  if (end === undefined || start === undefined) return none
  const own = end.adjusted / start.adjusted - 1
  const fund_end = adjustedOn(fund, end.day)
  const fund_start = adjustedOn(fund, start.day)
  if (fund_end === undefined || fund_start === undefined) {
    return { ...none, return_30d: roundedFraction(own) }
  }
  const relative = own - (fund_end / fund_start - 1)
  return { return_30d: roundedFraction(own), return_30d_relative: roundedFraction(relative) }
}
