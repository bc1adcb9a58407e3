/**
 * A ticker's closes in one year: absent → real, or demo. Neither ever becomes the other.
 *
 * Source: decisions of document 3, metric registry (A3).
 */
import { and, assign, setup } from "xstate"
import {
  demoMixed,
  isOfYear,
  known,
  lastOfDay,
  no_year,
  withDay,
  wrongYear,
  type Year,
} from "#actors/capital-pressure/year.ts"
import { decider } from "#actors/decider.ts"
import { generated } from "#events/capital-pressure/generated.ts"
import { PriceEvent, PriceQuoted, PriceRequoted } from "#events/capital-pressure/price.ts"
import { PriceCommand } from "#schemas/capital-pressure/price.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

/** Close and adjusted close of each day. */
export type PriceContext = Year<readonly [close: number, adjusted: number]>

/** More than any exchange quotes; so a year's snapshot has a largest size. */
const significant_digits = 9

const rounded = (price: number) => Number(price.toPrecision(significant_digits))

const chart = setup({
  types: { context: {} as PriceContext, events: {} as PriceEvent },
  guards: {
    is_real: ({ event }) => event.demo === undefined,
    is_demo: ({ event }) => event.demo === true,
    is_new: ({ context, event }) =>
      isOfYear(context, event.ts) && known(context, event.ts) === undefined,
    is_known: ({ context, event }) => {
      if (event.type !== "PriceRequoted") return false
      const [close, adjusted] = known(context, event.ts) ?? []
      return close === event.previous_close && adjusted === event.previous_adjusted
    },
  },
  actions: {
    learn: assign(({ context, event }) =>
      withDay(context, event.ts, [event.close, event.adjusted] as const),
    ),
  },
})

const kept = (is_of_kind: "is_real" | "is_demo") =>
  ({
    on: {
      PriceQuoted: { guard: and([is_of_kind, "is_new"]), actions: "learn" },
      PriceRequoted: { guard: and([is_of_kind, "is_known"]), actions: "learn" },
    },
  }) as const

export const machine = chart.createMachine({
  id: "capital-pressure.price",
  context: no_year,
  initial: "absent",
  states: {
    absent: {
      on: {
        PriceQuoted: [
          { guard: "is_demo", target: "demo", actions: "learn" },
          { target: "real", actions: "learn" },
        ],
      },
    },
    real: kept("is_real"),
    demo: kept("is_demo"),
  },
})

export const Price = decider({
  machine,
  version: 1,
  command: PriceCommand,
  event: PriceEvent,
  rejection: Rejection,
  propose: {
    QuotePrices: ({ prices, demo }, context, state) => {
      // What is refused is refused, even where it tells nothing new.
      const is_other = state.matches(demo ? "real" : "demo")
      return lastOfDay(prices).flatMap((price): ReadonlyArray<PriceEvent> => {
        const { ts } = price
        const now = { ts, close: rounded(price.close), adjusted: rounded(price.adjusted) }
        const before = known(context, ts)
        if (before === undefined || is_other) {
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
