import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { Store } from "#projections/capital-pressure/store.ts"
import { watchlistOf } from "#projections/capital-pressure/watchlist.ts"
import { Watchlist } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import type { WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"
import { every, pricesOf, storeOf } from "../world/capital-pressure/store.ts"
import { syntheticStore } from "../world/capital-pressure/synthetic-store.ts"

type Rows = Parameters<typeof pricesOf>[0]

/** The row of LLY, computed from its own closes and those of the fund. */
const row = (own: Rows, fund: Rows = [], otherwise: Partial<Store> = {}) => {
  const prices = new Map([
    ["LLY", pricesOf(own)],
    ["XLV", pricesOf(fund)],
  ])
  return watchlistOf(storeOf({ prices, ...otherwise })).rows[1]
}

const target = (price: number, fwd_pe: number | null = null): Partial<Store> => {
  const one: WatchlistTarget = { ticker: "LLY", target: price, fwd_pe, set_on: "2026-10-01" }
  return { targets: [one] }
}

const month: Rows = [
  ["2026-10-21", 100],
  ["2026-11-20", 110],
]

describe("the watchlist", () => {
  it("has its eight names when nothing is known of any", () => {
    const { rows, benchmark } = watchlistOf(storeOf())
    expect(benchmark).toBe("XLV")
    expect(rows.map(({ ticker }) => ticker)).toEqual([
      "UNH",
      "LLY",
      "JNJ",
      "ABBV",
      "MRK",
      "ISRG",
      "TMO",
      "CVS",
    ])
    expect(rows[0]).toEqual({
      ticker: "UNH",
      name: "UnitedHealth Group",
      sub: "Managed care",
      price: null,
      target: 0,
      fwd_pe: "n/a",
      status: "no price",
      return_30d: null,
      return_30d_relative: null,
      sparkline: [],
      as_of: null,
      demo: false,
    })
  })

  it("has the last close, and the target and the valuation that the operator set", () => {
    expect(row(month, [], target(120, 17.44))).toMatchObject({
      price: 110,
      as_of: "2026-11-20",
      target: 120,
      fwd_pe: "17.4x",
      sparkline: [100, 110],
    })
    expect(row(month, [], target(120))?.fwd_pe).toBe("n/a")
  })

  it.each([
    [94.9, "below target"],
    [95, "near target"],
    [105, "near target"],
    [105.1, "above target"],
  ])("at %d against a target of 100 is %s", (price, status) => {
    expect(row([["2026-11-20", price]], [], target(100))?.status).toBe(status)
  })

  it("has no status without a price, or a target", () => {
    expect(row([], [], target(100))?.status).toBe("no price")
    expect(row(month, [], target(0))?.status).toBe("no target")
    expect(row(month)?.status).toBe("no target")
  })

  it("has the last 30 closes as its line", () => {
    const { days, values } = every(
      1,
      "2026-01-01",
      Array.from({ length: 80 }, (_, day) => day + 1),
    )
    const rows = Array.from(days, (day, index) => [dateOf(day), values[index] ?? 0] as const)
    expect(row(rows)?.sparkline).toEqual(Array.from(values.slice(-30)))
  })

  it("is marked where its prices or its targets are generated", () => {
    const feed = { last_ingested_at: null, last_error_at: null, last_error: null, demo: true }
    for (const id of ["prices", "watchlist"]) {
      expect(row(month, [], { feeds: new Map([[id, feed]]) })?.demo).toBe(true)
    }
    expect(row(month, [], { feeds: new Map([["nfci", feed]]) })?.demo).toBe(false)
  })

  it("is as the API describes it", () => {
    const found = watchlistOf(syntheticStore())
    expect(Schema.decodeUnknownSync(Watchlist)(found)).toEqual(found)
    expect(found.rows.every((one) => one.return_30d_relative !== null)).toBe(true)
  })
})

describe("a return over 30 days", () => {
  it("is a fraction, of the adjusted closes", () => {
    expect(row(month)?.return_30d).toBe(0.1)
    const { days, close } = pricesOf(month)
    const prices = new Map([["LLY", { days, close, adjusted: Float64Array.of(50, 110) }]])
    expect(watchlistOf(storeOf({ prices })).rows[1]?.return_30d).toBe(1.2)
  })

  it("begins with the last close 30 calendar days before, or earlier", () => {
    const rows: Rows = [
      ["2026-10-20", 50],
      ["2026-10-22", 1],
      ["2026-11-20", 110],
    ]
    expect(row(rows)?.return_30d).toBe(1.2)
  })

  it.each([
    ["2026-10-11", 0.1],
    ["2026-10-10", null],
  ])("from %s is %s: a close may be ten days older at most", (date, expected) => {
    expect(
      row([
        [date, 100],
        ["2026-11-20", 110],
      ])?.return_30d,
    ).toBe(expected)
  })

  it("is none of a name whose prices are younger", () => {
    expect(
      row([
        ["2026-11-19", 100],
        ["2026-11-20", 110],
      ]),
    ).toMatchObject({
      return_30d: null,
      return_30d_relative: null,
    })
  })

  it("is relative to the fund's over the same two dates", () => {
    const fund: Rows = [
      ["2026-10-21", 200],
      ["2026-11-20", 210],
      ["2026-11-21", 999],
    ]
    expect(row(month, fund)?.return_30d_relative).toBe(0.05)
  })

  it("takes the fund's dates from the name's, not from 30 days before", () => {
    const own: Rows = [
      ["2026-10-19", 100],
      ["2026-11-20", 110],
    ]
    const fund: Rows = [
      ["2026-10-19", 200],
      ["2026-10-21", 1],
      ["2026-11-20", 210],
    ]
    expect(row(own, fund)?.return_30d_relative).toBe(0.05)
  })

  it.each([
    ["the last day", "2026-10-21", "2026-11-19"],
    ["the first day", "2026-10-20", "2026-11-20"],
    ["the first day, but on the day after", "2026-10-22", "2026-11-20"],
  ])("is relative to nothing where the fund has no close of %s", (_, first, last) => {
    const fund: Rows = [
      [first, 200],
      [last, 210],
    ]
    const found = row(month, fund)
    expect(found).toMatchObject({ return_30d: 0.1, return_30d_relative: null })
  })

  it("is relative to nothing where only the fund has a close 30 days before", () => {
    const own: Rows = [
      ["2026-10-19", 100],
      ["2026-11-20", 110],
    ]
    const fund: Rows = [
      ["2026-10-16", 100],
      ["2026-10-20", 200],
      ["2026-10-21", 200],
      ["2026-11-20", 210],
    ]
    expect(row(own, fund)).toMatchObject({ return_30d: 0.1, return_30d_relative: null })
  })

  it("has nothing to be relative to without the fund's closes", () => {
    expect(row(month)).toMatchObject({ return_30d: 0.1, return_30d_relative: null })
    const old: Rows = [
      ["2026-10-21", 200],
      ["2026-11-01", 210],
    ]
    expect(row(month, old)?.return_30d_relative).toBeNull()
  })
})
