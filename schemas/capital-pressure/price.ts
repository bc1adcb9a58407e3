/** Prices: a ticker's closes in one year. Source: market facts, A3; DESIGN, metrics. */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

const days_max = 366

/** `adjusted` is the close net of splits and dividends, from which returns are computed. */
export const Price = Schema.Struct({
  ts: CalendarDate,
  close: Schema.Finite.check(Schema.isGreaterThan(0)),
  adjusted: Schema.Finite.check(Schema.isGreaterThan(0)),
})
export type Price = typeof Price.Type

/** New days are quoted, changed ones are requoted, missing ones stay. */
export const QuotePrices = message("QuotePrices", {
  prices: Schema.Array(Price).check(Schema.isMaxLength(days_max)),
  demo: Schema.Boolean,
})

export const PriceCommand = Schema.Union([QuotePrices])
export type PriceCommand = typeof PriceCommand.Type

/** The ticker of the S&P 500, whose closes are shown with the composite. */
export const index_ticker = "SP500"
