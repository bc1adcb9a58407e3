/**
 * Yahoo's charts: a year of closes for a ticker. They are for personal use, and documented nowhere.
 *
 * Source: market facts, A1.4 Yahoo chart.
 */
import { Result, Schema } from "effect"
import type { FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import type { Ask } from "#adapters/capital-pressure/feeds/client.ts"
import {
  bytes_max_default,
  type FeedRequest,
  jsonOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { type Provider, pricesFromAnswer } from "#adapters/capital-pressure/feeds/provider.ts"
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

/** Closes of the last year, or of as many as reach back to `since`. */
export const yahoo =
  (ask: Ask): Provider =>
  (ticker, since, now) => {
    const query = new URLSearchParams({ range: rangeOf(since, now), interval: "1d" })
    const request: FeedRequest = {
      publisher: "yahoo",
      path: `/v8/finance/chart/${encodeURIComponent(ticker)}?${query}`,
      bytes_max: bytes_max_default,
    }
    return pricesFromAnswer(ask, request, (bytes) =>
      Result.flatMap(jsonOf(Chart, bytes), ({ chart }) => {
        const found = chart.result?.[0]
        if (!found || chart.error !== null)
          return Result.fail("answered an error instead of prices")
        const { symbol, currency } = found.meta
        if (symbol !== ticker) return Result.fail("answered another ticker")
        if (currency !== "USD") return Result.fail("answered another currency than USD")
        return quotesOf(found, now)
      }),
    )
  }

/** The ranges that it knows, in days. */
const ranges = [
  ["1y", 365] as const,
  ["2y", 730] as const,
  ["5y", 1825] as const,
  ["10y", 3650] as const,
]

const rangeOf = (since: number | undefined, now: number) => {
  const days = since === undefined ? 0 : dayAt(now) - since
  return ranges.find(([, reach]) => days <= reach)?.[0] ?? "max"
}

/** When New York closes, in seconds of its day; told where the answer itself does not. */
const close_s = 57_600
const s_of_day = 86_400

/** Days are the exchange's. A close may be null, and the last one the price of a day that runs. */
const quotesOf = (
  { meta, timestamp: times = [], indicators }: ChartResult,
  now: number,
): Result.Result<FetchedPrices, string> => {
  const close = indicators.quote[0]?.close ?? []
  const adjusted = indicators.adjclose?.[0]?.adjclose ?? close
  if (close.length !== times.length || adjusted.length !== times.length) {
    return Result.fail("answered columns of unequal length")
  }
  const now_s = Math.floor(now / 1000)
  const dayOf = (time: number) => Math.floor((time + meta.gmtoffset) / s_of_day)
  const today = dayOf(now_s)
  const told_end = meta.currentTradingPeriod?.regular.end
  const end =
    told_end !== undefined && dayOf(told_end) === today
      ? told_end
      : today * s_of_day + close_s - meta.gmtoffset
  const quotes = new Map<number, Quote>()
  for (const [n, time] of times.entries()) {
    const price = close[n]
    const net = adjusted[n]
    const day = dayOf(time)
    if (price === null || price === undefined || net === null || net === undefined) continue
    if (day === today && now_s < end) continue
    if (day > today) return Result.fail(`tells of ${dateOf(day)}, which is still to come`)
    quotes.set(day, { day, close: price, adjusted: net })
  }
  // A day may come twice, with its price after the close: that is the later one.
  return pricesOf([...quotes.values()])
}
