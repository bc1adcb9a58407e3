/**
 * A ticker's closes in one year: absent → real, or demo. Neither ever becomes the other.
 *
 * Source: decisions of document 3, metric registry (A3).
 */
import { demoMixed, lastOfDay, valueOn, wrongYear } from "#actors/capital-pressure/year.ts"
import { yearChart } from "#actors/capital-pressure/year-chart.ts"
import { decider } from "#actors/decider.ts"
import { generated } from "#events/capital-pressure/generated.ts"
import { PriceEvent, PriceQuoted, PriceRequoted } from "#events/capital-pressure/price.ts"
import { PriceCommand } from "#schemas/capital-pressure/price.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

/** A day's close and adjusted close. */
type Quote = readonly [close: number, adjusted: number]

/** More than any exchange quotes; bounds the size of a year's snapshot. */
const significant_digits = 9

const rounded = (price: number) => Number(price.toPrecision(significant_digits))

export const machine = yearChart<Quote, PriceEvent>({
  id: "capital-pressure.price",
  first: "PriceQuoted",
  again: "PriceRequoted",
  valueIn: ({ close, adjusted }) => [close, adjusted],
  replaces: (event, quote) =>
    event.type === "PriceRequoted" &&
    quote?.[0] === event.previous_close &&
    quote?.[1] === event.previous_adjusted,
})

export const Price = decider({
  machine,
  version: 1,
  command: PriceCommand,
  event: PriceEvent,
  rejection: Rejection,
  propose: {
    QuotePrices: ({ prices, demo }, context, state) => {
      // A command of the other kind must be rejected even if its prices are already known.
      const is_other_kind = state.matches(demo ? "real" : "demo")
      return lastOfDay(prices).flatMap((price): ReadonlyArray<PriceEvent> => {
        const { ts } = price
        const now = { ts, close: rounded(price.close), adjusted: rounded(price.adjusted) }
        const before = valueOn(context, ts)
        if (before === undefined || is_other_kind) {
          return [PriceQuoted.make({ ...now, ...generated(demo) })]
        }
        const [previous_close, previous_adjusted] = before
        if (now.close === previous_close && now.adjusted === previous_adjusted) return []
        const previous = { previous_close, previous_adjusted }
        return [PriceRequoted.make({ ...now, ...previous, ...generated(demo) })]
      })
    },
  },
  reject: ({ context }, { prices, demo }) => wrongYear(context, prices) ?? demoMixed(demo),
})
