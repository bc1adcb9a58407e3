/** Contract of every Feeds adapter. */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import {
  type FeedFailed,
  Feeds,
  type FetchedValues,
  type Unchanged,
} from "#actors/capital-pressure/feeds.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"

type Made<A> = Effect.Effect<A, unknown, Feeds | Scope.Scope>

export interface FeedsPlace {
  /** A daily metric, stored in the units in which it is published. */
  readonly metric: Metric
  readonly ticker: string
  /** Publishes rows of date and value under the correct header. */
  readonly publish: (rows: ReadonlyArray<readonly [string, string]>) => Effect.Effect<void>
  /** Publishes this text instead. */
  readonly publishText: (text: string) => Effect.Effect<void>
  /** Publishes closing prices of the ticker. */
  readonly quote: (rows: ReadonlyArray<readonly [string, string]>) => Effect.Effect<void>
}

type Test = (name: string, body: (place: FeedsPlace) => Made<void>) => void

export const valuesOf = (
  answer: FetchedValues | Unchanged,
): ReadonlyArray<readonly [string, number]> =>
  answer === "unchanged"
    ? assert.fail("no values arrived")
    : Array.from(answer.days, (day, n) => [dateOf(day), answer.values[n] ?? Number.NaN] as const)

/** Checks that the fetch fails with a readable message. */
export const refused = Effect.fnUntraced(function* (
  answer: Effect.Effect<unknown, FeedFailed>,
  because: RegExp,
) {
  const { detail } = yield* Effect.flip(answer)
  assert.match(detail, because)
  assert.match(detail, /\.$/)
  assert.isAtMost(detail.length, 500)
  return detail
})

export const feedsContract = (test: Test) => {
  valuesContract(test)
  faultsContract(test)
  pricesContract(test)
}

const valuesContract = (test: Test) => {
  test("returns values in the order of their days, without missing ones", (place) =>
    Effect.gen(function* () {
      const { fetch } = yield* Feeds
      yield* place.publish([
        ["2024-01-04", "1.5"] as const,
        ["2024-01-03", "."] as const,
        ["2024-01-02", "-2"] as const,
        ["2023-12-29", ""] as const,
        ["2023-12-28", "3e-2"] as const,
        ["2023-12-27", "null"] as const,
        ["2023-12-26", "NA"],
      ])
      assert.deepEqual(valuesOf(yield* fetch(place.metric)), [
        ["2023-12-28", 0.03] as const,
        ["2024-01-02", -2] as const,
        ["2024-01-04", 1.5],
      ])
    }))

  test("returns values from a day on, and none if there are no later ones", (place) =>
    Effect.gen(function* () {
      const { fetch } = yield* Feeds
      yield* place.publish([
        ["2024-01-02", "1"] as const,
        ["2024-01-03", "2"] as const,
        ["2024-01-04", "3"],
      ])
      const later = valuesOf(yield* fetch(place.metric, dayOf("2024-01-03")))
      assert.deepEqual(
        later.map(([date]) => date),
        ["2024-01-03", "2024-01-04"],
      )
      assert.deepEqual(valuesOf(yield* fetch(place.metric, dayOf("2024-01-05"))), [])
    }))

  test("counts a date once that comes twice, and refuses two values for it", (place) =>
    Effect.gen(function* () {
      const { fetch } = yield* Feeds
      const row = ["2024-01-02", "1.50"] as const
      yield* place.publish([row, ["2024-01-02", "1.5"]])
      assert.deepEqual(valuesOf(yield* fetch(place.metric)), [["2024-01-02", 1.5]])
      yield* place.publish([row, ["2024-01-02", "1.6"]])
      yield* refused(fetch(place.metric), /two values for 2024-01-02/)
    }))

  test("returns everything again after a reset", (place) =>
    Effect.gen(function* () {
      const { fetch, reset } = yield* Feeds
      yield* place.publish([["2024-01-02", "1"]])
      const first = yield* fetch(place.metric)
      if (first !== "unchanged") yield* first.acknowledge
      yield* reset(place.metric)
      assert.deepEqual(valuesOf(yield* fetch(place.metric)), [["2024-01-02", 1]])
    }))
}

const faults: ReadonlyArray<readonly [string, string, RegExp]> = [
  ["2024-01-02", "NaN", /"NaN" for 2024-01-02, which is not a number/],
  ["2024-01-02", "Infinity", /not a number/],
  ["2024-01-02", "1e999", /not a number/],
  ["2024-01-02", "0x10", /not a number/],
  ["2024-01-02", "1.2.3", /not a number/],
  ["2024-02-30", "1", /"2024-02-30", which is not a date/],
  ["02.01.2024", "1", /not a date/],
  ["1024-01-02", "1", /not a date/],
  ["2190-01-01", "1", /2190-01-01, which is in the future/],
]

const faultsContract = (test: Test) => {
  for (const [date, value, because] of faults) {
    test(`refuses all of it for one row of ${date} and ${value}`, (place) =>
      Effect.gen(function* () {
        const { fetch } = yield* Feeds
        yield* place.publish([["2024-01-05", "1"], [date, value] as const])
        yield* refused(fetch(place.metric), because)
      }))
  }

  const texts: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["a web page", "<!DOCTYPE html><title>Sign in</title>", /web page/],
    ["nothing at all", "", /nothing/],
    [
      "a table with other columns",
      "day,amount\n2024-01-02,1\n",
      /changed its columns.*day, amount/,
    ],
    ["bytes that are no text", "\u0000\u0001\u0002", /changed its columns|not text/],
  ]
  for (const [what, text, because] of texts) {
    test(`refuses ${what}`, (place) =>
      Effect.gen(function* () {
        const { fetch } = yield* Feeds
        yield* place.publishText(text)
        yield* refused(fetch(place.metric), because)
      }))
  }

  test("refuses a table that breaks off, and one without any value", (place) =>
    Effect.gen(function* () {
      const { fetch } = yield* Feeds
      yield* place.publish([["2024-01-02", "1"], ["2024-01-03", "1,2"] as const])
      yield* refused(fetch(place.metric), /3 of 2 columns in line 3/)
      yield* place.publish([["2024-01-02", "."]])
      yield* refused(fetch(place.metric), /no values/)
    }))

  test("has nothing of a stub", () =>
    Effect.gen(function* () {
      const { fetch } = yield* Feeds
      const stub = findMetric("put_call")
      if (stub) yield* refused(fetch(stub), /no feed|does not exist/)
    }))
}

const pricesContract = (test: Test) => {
  test("returns closes in the order of their days, at least a year of them", (place) =>
    Effect.gen(function* () {
      const { prices } = yield* Feeds
      yield* place.quote([
        ["2024-01-03", "12"] as const,
        ["2024-01-02", "11"] as const,
        ["2024-01-04", ""],
      ])
      const all = yield* prices(place.ticker)
      assert.deepEqual([...all.days].map(dateOf), ["2024-01-02", "2024-01-03"])
      assert.deepEqual([...all.close], [11, 12])
      assert.deepEqual([...all.adjusted], [11, 12])
      const yesterday = Math.floor(Date.now() / 86_400_000) - 1
      const close = [dateOf(yesterday - 30), "13"] as const
      yield* place.quote([close, ["2001-01-02", "9"]])
      assert.deepEqual([...(yield* prices(place.ticker, yesterday)).close], [13])
    }))

  test("refuses closes that are none", (place) =>
    Effect.gen(function* () {
      const { prices } = yield* Feeds
      yield* place.quote([["2024-01-02", "0"]])
      yield* refused(prices(place.ticker), /no price for 2024-01-02/)
      yield* place.quote([["2024-01-02", "-3"]])
      yield* refused(prices(place.ticker), /no price for 2024-01-02/)
      yield* place.quote([["2024-01-02", "n/a"]])
      yield* refused(prices(place.ticker), /"n\/a" for 2024-01-02, which is not a price/)
      yield* place.quote([["2024-01-02", "1"], ["2024-01-02", "2"] as const])
      yield* refused(prices(place.ticker), /two prices for 2024-01-02/)
      yield* place.quote([["2190-01-02", "1"]])
      yield* refused(prices(place.ticker), /in the future/)
    }))
}
