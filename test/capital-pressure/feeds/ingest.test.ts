import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Runtime, Stream } from "effect"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import { Observation } from "#actors/capital-pressure/observation.ts"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { lineOf, outcomeOf, rewordLogFailures, summary } from "#cli/dashboard/ingest-outcome.ts"
import { countOf, type FeedReport } from "#cli/dashboard/ingest-run.ts"
import { barOf, progressTo } from "#cli/progress.ts"
import { Log } from "#events/log.ts"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import { ObserveMetric } from "#schemas/capital-pressure/observation.ts"
import { DemoMixed } from "#schemas/capital-pressure/rejection.ts"
import { watchlist } from "#schemas/capital-pressure/watchlist.ts"
import {
  ingests,
  metricsOf,
  publishers,
  rows,
  targets,
  wanted,
  world,
} from "../../world/capital-pressure/ingested.ts"

const tickers = [...watchlist.map(({ ticker }) => ticker), "XLV", "SP500"]

/** `<aggregate>.<id> <event>` of each event after a position. */
const eventsAfter = Effect.fnUntraced(function* (position: number) {
  const log = yield* Log
  const commits = yield* Stream.runCollect(log.read("capital-pressure", position))
  return commits.flatMap(({ stream, commit }) =>
    commit.events.map(({ type }) => `${stream.replace("capital-pressure.", "")} ${type}`),
  )
})

const head = Effect.flatMap(Log, (log) => log.head("capital-pressure"))

describe("an ingest", () => {
  it.live("keeps each year apart, and records the feed in the same commit", () =>
    Effect.gen(function* () {
      const sources = publishers()
      sources.tell.set("nfci", { "2024-12-27": -0.5, "2025-01-03": -0.4 })
      const { feeds } = yield* ingests(sources, { metrics: metricsOf("nfci") })
      assert.deepEqual(feeds, [
        {
          feed: "nfci",
          outcome: "ingested",
          is_unchanged: false,
          observed: 2,
          revised: 0,
          newest: "2025-01-03",
        },
      ])
      assert.deepEqual(yield* eventsAfter(0), [
        "observation.nfci-2024 MetricObserved",
        "observation.nfci-2025 MetricObserved",
        "feed.nfci FeedIngested",
      ])
      const log = yield* Log
      const commits = yield* Stream.runCollect(log.read("capital-pressure"))
      assert.equal(new Set(commits.map(({ commit }) => commit.commands.at(-1))).size, 1)
      assert.deepEqual(yield* rows("select id, demo from capital_feed"), [{ id: "nfci", demo: 0 }])
    }).pipe(Effect.provide(world)),
  )

  it.live("keeps both vintages of a value that is revised", () =>
    Effect.gen(function* () {
      const sources = publishers()
      sources.tell.set("nfci", { "2025-01-03": -0.4, "2025-01-10": -0.3 })
      yield* ingests(sources, { metrics: metricsOf("nfci") })
      sources.tell.set("nfci", { "2025-01-03": -0.45, "2025-01-10": -0.3, "2025-01-17": -0.2 })
      const { feeds } = yield* ingests(sources, { metrics: metricsOf("nfci") })
      assert.include(feeds[0], { observed: 1, revised: 1, newest: "2025-01-17" })
      sources.tell.set("nfci", { "2025-01-03": -0.41 })
      yield* ingests(sources, { metrics: metricsOf("nfci") })
      assert.deepEqual(
        yield* rows("select value, first_value from capital_observation order by day"),
        [
          { value: -0.41, first_value: -0.4 },
          { value: -0.3, first_value: -0.3 },
          { value: -0.2, first_value: -0.2 },
        ],
      )
      assert.deepEqual(yield* rows("select value, previous from capital_revision order by rowid"), [
        { value: -0.45, previous: -0.4 },
        { value: -0.41, previous: -0.45 },
      ])
    }).pipe(Effect.provide(world)),
  )

  it.live("says of an unchanged world only that it was asked", () =>
    Effect.gen(function* () {
      const sources = publishers()
      for (const ticker of tickers) sources.tell.set(ticker, { "2025-01-03": 10 })
      sources.tell.set("nfci", { "2025-01-03": -0.4 })
      sources.tell.set("skew", { "2025-01-03": 140 })
      const what = {
        metrics: metricsOf("nfci", "skew"),
        prices: true,
        targets: Effect.succeed(targets(300)),
      }
      const first = yield* ingests(sources, what)
      assert.isTrue(first.feeds.every(({ outcome }) => outcome === "ingested"))
      const before = yield* head
      sources.tell.set("skew", "unchanged")
      const { feeds } = yield* ingests(sources, what)
      assert.sameMembers(
        [...(yield* eventsAfter(before))],
        ["feed.watchlist", "feed.nfci", "feed.skew", "feed.prices"].map(
          (stream) => `${stream} FeedIngested`,
        ),
      )
      const skew = feeds.find(({ feed }) => feed === "skew")
      assert.deepInclude(skew, { is_unchanged: true, observed: 0, newest: null })
    }).pipe(Effect.provide(world)),
  )

  it.live("leaves what is stored as it is where a feed fails, and goes on with the others", () =>
    Effect.gen(function* () {
      const sources = publishers()
      sources.tell.set("nfci", { "2025-01-03": -0.4 })
      sources.tell.set("skew", { "2025-01-03": 140 })
      yield* ingests(sources, { metrics: metricsOf("nfci", "skew") })
      const stored = yield* rows("select * from capital_observation where metric_id = 'nfci'")
      sources.tell.set("nfci", { fails: "FRED returned status 500." })
      sources.tell.set("skew", { "2025-01-03": 140, "2025-01-06": 141 })
      const { feeds } = yield* ingests(sources, { metrics: metricsOf("nfci", "skew") })
      assert.deepEqual(feeds[0], {
        feed: "nfci",
        outcome: "failed",
        detail: "FRED returned status 500.",
      })
      assert.include(feeds[1], { outcome: "ingested", observed: 1 })
      assert.deepEqual(
        yield* rows("select * from capital_observation where metric_id = 'nfci'"),
        stored,
      )
      const [row] = yield* rows("select * from capital_feed where id = 'nfci'")
      assert.deepInclude(row, { last_error: "FRED returned status 500." })
      sources.tell.set("nfci", "unchanged")
      yield* ingests(sources, { metrics: metricsOf("nfci") })
      const [mended] = yield* rows("select last_error from capital_feed where id = 'nfci'")
      assert.deepEqual(mended, { last_error: null })
    }).pipe(Effect.provide(world)),
  )

  it.live("keeps the received prices, and counts the tickers that failed", () =>
    Effect.gen(function* () {
      const sources = publishers()
      for (const ticker of tickers) sources.tell.set(ticker, { "2025-01-03": 10 })
      sources.tell.set("CVS", { fails: "Yahoo returned status 429." })
      const { feeds } = yield* ingests(sources, { prices: true })
      assert.deepEqual(feeds, [
        {
          feed: "prices",
          outcome: "failed",
          detail: "1 of 10 tickers failed. Yahoo returned status 429.",
        },
      ])
      const [count] = yield* rows("select count(*) as n from capital_price")
      assert.deepEqual(count, { n: 9 })
    }).pipe(Effect.provide(world)),
  )

  it.live("has publishers keep an answer only when it is in the log", () =>
    Effect.gen(function* () {
      const sources = publishers()
      sources.tell.set("nfci", { "2025-01-03": -0.4 })
      yield* ingests(sources, { metrics: metricsOf("nfci") })
      // The validator is discarded before the fetch, because the log has no values, and before
      // storing.
      assert.deepEqual([sources.kept, sources.forgotten], [["nfci"], ["nfci", "nfci"]])
      // Generated values of the year before, although the feed never returned generated values.
      const commands = yield* Commands
      const demo = ObserveMetric.make({
        observations: [{ ts: "2024-01-05", value: 1 }],
        demo: true,
      })
      const origin = { command_id: "demo", actor: "test", at: "2025-01-01T00:00:00.000Z" }
      yield* commands.send(origin, address(Observation, "nfci-2024", demo))
      sources.tell.set("nfci", { "2024-01-05": 2, "2025-01-10": -0.3 })
      const { feeds } = yield* ingests(sources, { metrics: metricsOf("nfci") })
      assert.include(feeds[0], { outcome: "failed" })
      assert.deepEqual([sources.kept, sources.forgotten], [["nfci"], ["nfci", "nfci", "nfci"]])
      sources.tell.set("nfci", "unchanged")
      yield* ingests(sources, { metrics: metricsOf("nfci") })
      assert.lengthOf(sources.forgotten, 3)
      const [count] = yield* rows("select count(*) as n from capital_observation")
      assert.deepEqual(count, { n: 2 })
    }).pipe(Effect.provide(world)),
  )

  it.live("never lets real values into a folder of generated ones, nor the reverse", () =>
    Effect.gen(function* () {
      for (const [first, then] of [
        [true, false],
        [false, true],
      ] as const) {
        const sources = publishers()
        sources.tell.set("nfci", { "2025-01-03": -0.4 })
        sources.tell.set("skew", { "2025-01-03": 140 })
        yield* Effect.gen(function* () {
          yield* ingests(sources, { metrics: metricsOf("nfci"), demo: first })
          const before = yield* head
          const mixed = { metrics: metricsOf("skew"), demo: then }
          const refused = yield* Effect.result(ingests(sources, mixed))
          assert.isTrue(Result.isFailure(refused))
          if (Result.isFailure(refused)) assert.match(String(refused.failure), /DemoMixed/)
          assert.equal(yield* head, before)
        }).pipe(Effect.provide(world))
      }
    }),
  )

  it.live("is the same file when it is built again from the log", () =>
    Effect.gen(function* () {
      const sources = publishers()
      for (const ticker of tickers) sources.tell.set(ticker, { "2024-01-03": 9, "2025-01-03": 10 })
      for (const [n, { metric_id }] of metricsOf().entries()) {
        sources.tell.set(metric_id, { "2024-12-27": n, "2025-01-03": n + 0.5 })
      }
      const what = {
        metrics: metricsOf(),
        prices: true,
        targets: Effect.succeed(targets(300)),
      }
      yield* ingests(sources, what)
      sources.tell.set("nfci", { "2024-12-27": 7 })
      sources.tell.set("skew", { fails: "The publisher is offline." })
      yield* ingests(sources, what)
      const model = yield* CapitalPressureModel
      const before = yield* model.dump
      yield* model.rebuild
      assert.deepEqual(yield* model.dump, before)
      assert.equal(before.capital_feed?.length, 22)
    }).pipe(Effect.provide(world)),
  )
})

const ingested: FeedReport = {
  feed: "nfci",
  outcome: "ingested",
  is_unchanged: false,
  observed: 12,
  revised: 3,
  newest: "2026-11-13",
}
const failed = { feed: "skew", outcome: "failed", detail: "Cboe answered\u001b[2J 500." } as const

describe("what an ingest says", () => {
  it.effect("ends with 0, 2 or 1", () =>
    Effect.gen(function* () {
      const codeOf = (...feeds: Parameters<typeof outcomeOf>[0]) =>
        Effect.map(Effect.result(outcomeOf(feeds)), (result) =>
          Result.isSuccess(result) ? 0 : result.failure[Runtime.errorExitCode],
        )
      assert.equal(yield* codeOf(ingested), 0)
      assert.equal(yield* codeOf(ingested, failed), 2)
      assert.equal(yield* codeOf(failed), 1)
      const failure = yield* Effect.flip(outcomeOf([ingested, failed]))
      assert.equal(failure.message, "1 of 2 feeds failed: skew. Cboe answered?[2J 500.")
    }),
  )

  it.effect("says what is out of reach, and leaves other failures as they are", () =>
    Effect.gen(function* () {
      const away = new Unavailable({ detail: "No host answered." })
      const result = yield* Effect.flip(rewordLogFailures(Effect.fail(away)))
      assert.equal(result.message, "the log is unavailable: No host answered.")
      const mixed = yield* Effect.flip(
        rewordLogFailures(Effect.fail(new DemoMixed({ detail: "No." }))),
      )
      assert.equal(mixed.message, "No.")
      assert.equal(yield* Effect.flip(rewordLogFailures(Effect.fail("other"))), "other")
    }),
  )

  it("is a table, and a line for each feed", () => {
    assert.deepEqual(summary([ingested, { ...ingested, is_unchanged: true }, failed]).split("\n"), [
      "FEED  NEW  REVISED  NEWEST",
      "nfci   12        3  2026-11-13",
      "nfci   12        3  2026-11-13  unchanged at the publisher",
      "skew    -        -  -           Cboe answered?[2J 500.",
    ])
    assert.equal(lineOf(ingested), "nfci: 12 new, 3 revised, newest 2026-11-13")
  })

  it.effect("is a bar on a terminal, and lines where there is none", () =>
    Effect.gen(function* () {
      assert.equal(barOf(6, 24, "nfci"), "[######                  ] 6/24 nfci")
      assert.equal(barOf(1, 2, "x".repeat(200)).length, 79)
      const messages: Array<string> = []
      const write = (text: string) => messages.push(text)
      const plain = progressTo(2, { write })
      yield* plain.done("one\u0007")
      plain.at("two", 1, 2)
      yield* plain.end
      assert.deepEqual(messages.splice(0), ["one?\n"])
      const bar = progressTo(2, { isTTY: true, write })
      yield* bar.done("one")
      assert.match(messages.join(""), /\[#{12} {12}\] 1\/2 one$/)
      yield* bar.end
      assert.match(messages.join(""), /\r +\r$/)
    }),
  )

  it("counts the feeds that are wanted", () => {
    const fails = Effect.fail(new FeedFailed({ detail: "" }))
    assert.equal(countOf(wanted({ metrics: metricsOf(), prices: true, targets: fails })), 22)
    assert.equal(countOf(wanted({ metrics: metricsOf("nfci") })), 1)
  })
})
