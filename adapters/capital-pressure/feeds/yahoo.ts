/**
 * Yahoo's chart API: closes of a ticker. Undocumented and for personal use.
 *
 * Source: market facts, A1.4 Yahoo chart.
 */
import { Result, Schema } from "effect"
import type { FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import type { Download } from "#adapters/capital-pressure/feeds/client.ts"
import {
  bytes_max_default,
  type FeedRequest,
  jsonOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { fetchPrices, type Provider } from "#adapters/capital-pressure/feeds/provider.ts"
import { pricesOf, type Quote } from "#adapters/capital-pressure/feeds/quotes.ts"
import { dateOf, dayAt } from "#schemas/capital-pressure/day.ts"

const Closes = Schema.Array(Schema.NullOr(Schema.Finite))

const Chart = Schema.Struct({
  chart: Schema.Struct({
    result: Schema.NullOr(
      Schema.Array(
        Schema.Struct({
          meta: Schema.Struct({
            symbol: Schema.String,
            currency: Schema.NullOr(Schema.String),
            gmtoffset: Schema.Int,
            currentTradingPeriod: Schema.optionalKey(
              Schema.Struct({ regular: Schema.Struct({ end: Schema.Int }) }),
            ),
          }),
          timestamp: Schema.optionalKey(Schema.Array(Schema.Int)),
          indicators: Schema.Struct({
            quote: Schema.Array(Schema.Struct({ close: Schema.optionalKey(Closes) })),
            adjclose: Schema.optionalKey(Schema.Array(Schema.Struct({ adjclose: Closes }))),
          }),
        }),
      ),
    ),
    error: Schema.NullOr(Schema.Unknown),
  }),
})

type ChartResult = NonNullable<(typeof Chart.Type)["chart"]["result"]>[number]

/** Closes of the last year, or of the shortest range that includes `since`. */
export const yahoo =
  (download: Download): Provider =>
  (ticker, since, now) => {
    const query = new URLSearchParams({ range: rangeOf(since, now), interval: "1d" })
    const request: FeedRequest = {
      publisher: "yahoo",
      path: `/v8/finance/chart/${encodeURIComponent(ticker)}?${query}`,
      bytes_max: bytes_max_default,
    }
    return fetchPrices(download, request, (bytes) =>
      Result.flatMap(jsonOf(Chart, bytes), ({ chart }) => {
        const result = chart.result?.[0]
        if (!result || chart.error !== null)
          return Result.fail("returned an error instead of prices")
        const { symbol, currency } = result.meta
        if (symbol !== ticker) return Result.fail("returned another ticker")
        if (currency !== "USD") return Result.fail("returned a currency other than USD")
        return quotesOf(result, now)
      }),
    )
  }

/** The supported ranges, in days. */
const ranges = [
  ["1y", 365] as const,
  ["2y", 730] as const,
  ["5y", 1825] as const,
  ["10y", 3650] as const,
]

const rangeOf = (since: number | undefined, now: number) => {
  const days = since === undefined ? 0 : dayAt(now) - since
  return ranges.find(([, range_days]) => days <= range_days)?.[0] ?? "max"
}

/** New York's close, in seconds of the day, if the response does not have it. */
const close_s = 57_600
const s_of_day = 86_400

/** Days are in the exchange's time zone. Skips null closes and the price of an unfinished day. */
const quotesOf = (
  { meta, timestamp: times = [], indicators }: ChartResult,
  now: number,
): Result.Result<FetchedPrices, string> => {
  const close = indicators.quote[0]?.close ?? []
  const adjusted = indicators.adjclose?.[0]?.adjclose ?? close
  if (close.length !== times.length || adjusted.length !== times.length) {
    return Result.fail("returned columns of unequal length")
  }
  const now_s = Math.floor(now / 1000)
  const dayOf = (time: number) => Math.floor((time + meta.gmtoffset) / s_of_day)
  const today = dayOf(now_s)
  const session_end = meta.currentTradingPeriod?.regular.end
  const end =
    session_end !== undefined && dayOf(session_end) === today
      ? session_end
      : today * s_of_day + close_s - meta.gmtoffset
  const quotes = new Map<number, Quote>()
  for (const [n, time] of times.entries()) {
    const price = close[n]
    const adjusted_price = adjusted[n]
    const day = dayOf(time)
    if (
      price === null ||
      price === undefined ||
      adjusted_price === null ||
      adjusted_price === undefined
    )
      continue
    if (day === today && now_s < end) continue
    if (day > today) return Result.fail(`has the date ${dateOf(day)}, which is in the future`)
    quotes.set(day, { day, close: price, adjusted: adjusted_price })
  }
  // A day may occur twice; the later one is the price after the close.
  return pricesOf([...quotes.values()])
}
