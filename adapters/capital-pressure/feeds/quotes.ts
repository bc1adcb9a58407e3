/** Validates and sorts closes, from tables or single quotes. */
import { Result } from "effect"
import type { FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import { cellsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import { quoted } from "#adapters/capital-pressure/feeds/plan.ts"
import {
  firstAtOrAfter,
  isMissing,
  numberOf,
  parseDay,
} from "#adapters/capital-pressure/feeds/series.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"

export interface Quote {
  readonly day: number
  readonly close: number
  readonly adjusted: number
}

/** Sorts quotes by day. A close that is not positive or conflicts with another is an error. */
export const pricesOf = (quotes: ReadonlyArray<Quote>): Result.Result<FetchedPrices, string> => {
  const sorted = quotes.toSorted((one, other) => one.day - other.day)
  const unique: Array<Quote> = []
  for (const quote of sorted) {
    const date = dateOf(quote.day)
    if (!(quote.close > 0 && quote.adjusted > 0)) return Result.fail(`has no price for ${date}`)
    const last = unique.at(-1)
    if (last?.day !== quote.day) unique.push(quote)
    else if (last.close !== quote.close || last.adjusted !== quote.adjusted) {
      return Result.fail(`has two prices for ${date}`)
    }
  }
  return Result.succeed({
    days: Int32Array.from(unique, ({ day }) => day),
    close: Float64Array.from(unique, ({ close }) => close),
    adjusted: Float64Array.from(unique, ({ adjusted }) => adjusted),
  })
}

/** The prices from the day `since` on. */
export const pricesFrom = (prices: FetchedPrices, since: number | undefined): FetchedPrices => {
  if (since === undefined) return prices
  const start = firstAtOrAfter(prices.days, since)
  return {
    days: prices.days.slice(start),
    close: prices.close.slice(start),
    adjusted: prices.adjusted.slice(start),
  }
}

const date = /^date$/i
const close = /^close$/i
const adjusted = /^adj(usted)?[ _]?(close)?$/i

/** Parses a table with the columns Date, Close and optionally Adj Close. */
export const parsePrices = (text: string, today: number): Result.Result<FetchedPrices, string> => {
  const is_adjusted = Result.isSuccess(cellsOf(text, [adjusted]))
  const cells = cellsOf(text, [date, close, is_adjusted ? adjusted : close])
  return Result.flatMap(cells, (rows) => {
    const quotes: Array<Quote> = []
    for (const [date_text = "", price = "", adjusted_text = ""] of rows) {
      const day = parseDay(date_text)
      if (day === undefined)
        return Result.fail(`has the date "${quoted(date_text)}", which is not a date`)
      if (isMissing(price) || isMissing(adjusted_text)) continue
      if (day > today) return Result.fail(`has the date ${date_text}, which is in the future`)
      const [close, adjusted] = [numberOf(price), numberOf(adjusted_text)]
      if (close === undefined || adjusted === undefined) {
        return Result.fail(`has "${quoted(price)}" for ${date_text}, which is not a price`)
      }
      quotes.push({ day, close, adjusted })
    }
    return pricesOf(quotes)
  })
}
