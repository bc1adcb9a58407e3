import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Price } from "#actors/capital-pressure/price.ts"
import { type PriceEvent, PriceQuoted, PriceRequoted } from "#events/capital-pressure/price.ts"
import { commit_bytes_max } from "#events/log.ts"
import { QuotePrices, type Price as Told } from "#schemas/capital-pressure/price.ts"
import { bytesOf, coded, decided, leap_year } from "../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const ts = "2026-01-02"
const demo = true as const
const first = { ts, close: 140.25, adjusted: 139.5 }
/** The adjusted close differs, because a dividend was paid since. */
const later = { ts, close: 140.25, adjusted: 138.75 }

const quoted = PriceQuoted.make(first)
const previous = { previous_close: first.close, previous_adjusted: first.adjusted }
const requoted = PriceRequoted.make({ ...later, ...previous })

const states = {
  absent: [],
  real: [quoted],
  "real and requoted": [quoted, requoted],
  demo: [PriceQuoted.make({ ...first, demo })],
} satisfies Record<string, ReadonlyArray<PriceEvent>>

const quote = (is_demo: boolean, ...prices: ReadonlyArray<Told>) =>
  QuotePrices.make({ prices, demo: is_demo })

const split = { ts, close: 70.125, adjusted: 69.375 }

describe("a ticker's year", () => {
  everyState(coded(Price), states, {
    QuotePrices: [
      {
        with: "of an adjusted close",
        command: quote(false, later),
        in: {
          absent: [PriceQuoted.make(later)],
          real: [requoted],
          "real and requoted": [],
          demo: "DemoMixed",
        },
        otherwise: [],
      },
      {
        with: "of another close",
        command: quote(false, split),
        in: {
          absent: [PriceQuoted.make(split)],
          real: [PriceRequoted.make({ ...split, ...previous })],
          demo: "DemoMixed",
        },
        otherwise: [
          PriceRequoted.make({
            ...split,
            previous_close: later.close,
            previous_adjusted: later.adjusted,
          }),
        ],
      },
      {
        with: "of generated closes",
        command: quote(true, first),
        in: { absent: [PriceQuoted.make({ ...first, demo })], demo: [] },
        otherwise: "DemoMixed",
      },
      {
        with: "of another year",
        command: quote(false, { ...first, ts: "2025-12-31" }),
        in: { absent: [PriceQuoted.make({ ...first, ts: "2025-12-31" })] },
        otherwise: "WrongYear",
      },
    ],
  })

  it("keeps nine digits, so that the same price in more digits is no news", () => {
    const result = { ts, close: 140.123_456_789_123, adjusted: 1234.567_890_12 }
    const events = decided(Price, quote(false, result))
    assert.deepEqual(events, [PriceQuoted.make({ ts, close: 140.123_457, adjusted: 1234.567_89 })])
    const state = Price.after(Price.initialState, events)
    const again = quote(false, { ts, close: 140.123_456_9, adjusted: 1234.567_890_4 })
    assert.deepEqual(Price.decide(state, again), Result.succeed([]))
  })

  it("is corrupt where a day comes twice, or a requote is not of what is known", () => {
    const known = Price.evolve(Price.initialState, quoted)
    for (const event of [
      quoted,
      { ...requoted, previous_close: 1 },
      { ...requoted, previous_adjusted: 1 },
    ]) {
      assert.throws(() => Price.evolve(known, event), "cannot happen in this state")
    }
  })

  it("keeps a year of daily prices, however many digits, in a snapshot and in a commit", () => {
    const prices = leap_year.map((day, i) => {
      const close = (1 + i / 700) * 1.234_567_891_234e-6
      return { ts: day, close, adjusted: close * 0.9 }
    })
    const events = decided(Price, quote(true, ...prices))
    assert.lengthOf(events, 366)
    assert.isBelow(bytesOf(events), commit_bytes_max / 2)
    assert.equal(assertStorable(Price, events).value, "demo")
    const again = prices.map((price) => ({ ...price, close: price.close * 2 }))
    const requotes = Price.decide(Price.after(Price.initialState, events), quote(true, ...again))
    assert.isBelow(bytesOf(Result.getOrThrow(requotes)), commit_bytes_max / 2)
  })
})
