import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { loadComposite, loadObservations } from "#adapters/capital-pressure/store.ts"
import { backfillLine, noCompositeReason, sinceTooLate } from "#cli/dashboard/backfill-composite.ts"
import { runBackfill, today } from "#cli/dashboard/composite-run.ts"
import { DashboardFile, waitForFile } from "#cli/dashboard/dashboard-file.ts"
import { Log } from "#events/log.ts"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import { compositeHistory } from "#projections/capital-pressure/composite.ts"
import { demoOf } from "#projections/capital-pressure/demo.ts"
import type { CompositeSeries } from "#projections/capital-pressure/store.ts"
import { dateOf, dayOf, yearsBefore } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import {
  ingests,
  metricsOf,
  type Publishers,
  publishers,
  rows,
  world,
} from "../../world/capital-pressure/ingested.ts"

/** Two metrics of two tiers are enough, because they have few weeks. */
const ids = ["nfci", "bank_credit"]

/** Ingests the demo history of these metrics as published values. */
const filled = Effect.gen(function* () {
  const sources: Publishers = publishers()
  const { observations } = demoOf(yield* today)
  for (const id of ids) {
    const { days, values } = observations.get(id) ?? { days: [], values: [] }
    const published_of = Array.from(days, (day, at) => [dateOf(day), values[at] ?? 0] as const)
    sources.tell.set(id, Object.fromEntries(published_of))
  }
  yield* ingests(sources, { metrics: metricsOf(...ids) })
  return sources
})

const head = Effect.flatMap(Log, (log) => log.head("capital-pressure"))

const stored = Effect.map(DashboardFile, ({ path }) => loadComposite(path))

/** Rounded to the six decimals that are stored. */
const rounded = ({ days, z, tiers }: CompositeSeries) => ({
  days,
  z: z.map((value) => Math.round(value * 1e6) / 1e6 + 0),
  tiers: tiers.map((tier) => tier.map((value) => Math.round(value * 1e6) / 1e6 + 0)),
})

/** The composite computed directly from the file. */
const computed = (vintage: "latest" | "first") =>
  Effect.gen(function* () {
    const { path } = yield* DashboardFile
    const now = yield* today
    return compositeHistory(loadObservations(path, { vintage }), yearsBefore(now, 20), now)
  })

describe("backfill-composite", () => {
  it.live(
    "stores the composite of each business day, and changes nothing when it is repeated",
    () =>
      Effect.gen(function* () {
        yield* filled
        const progress: Array<readonly [number, number]> = []
        const onProgress = (done: number, total: number) => progress.push([done, total])
        const report = yield* runBackfill({ vintage: "latest", onProgress })
        assert.isAbove(report.days, 4000)
        assert.equal(report.changed, report.days)
        assert.deepEqual(progress, [
          [1, 2],
          [2, 2],
        ])
        assert.deepEqual(rounded(yield* stored), rounded(yield* computed("latest")))
        const [first] = yield* rows(
          "select min(day) as first, max(day) as last from capital_composite",
        )
        assert.deepEqual(first, {
          first: dayOf(report.first ?? ""),
          last: dayOf(report.last ?? ""),
        })
        const before = yield* head
        assert.deepEqual(yield* runBackfill({ vintage: "latest" }), { ...report, changed: 0 })
        assert.equal(yield* head, before)
        assert.equal(
          backfillLine(report),
          `${report.days} days from ${report.first} to ${report.last}, ${report.days} changed`,
        )
      }).pipe(Effect.provide(world)),
  )

  it.live("changes only the days that a revision changes, and can use first published values", () =>
    Effect.gen(function* () {
      const outcome = yield* filled
      yield* runBackfill({ vintage: "latest" })
      const original = rounded(yield* stored)
      // A value more than a year old, which is in every window after it.
      const { days = [], values = [] } = demoOf(yield* today).observations.get("nfci") ?? {}
      const revised = dateOf(days.at(-60) ?? 0)
      outcome.tell.set("nfci", { [revised]: (values.at(-60) ?? 0) + 0.8 })
      yield* ingests(outcome, { metrics: metricsOf("nfci") })
      const later = yield* runBackfill({ vintage: "latest" })
      assert.isAbove(later.changed, 200)
      assert.isBelow(later.changed, 420)
      const now = rounded(yield* stored)
      const at = now.days.findIndex((_, place) => now.z[place] !== original.z[place])
      assert.isAbove(now.days[at] ?? 0, dayOf(revised))
      assert.deepEqual(now, rounded(yield* computed("latest")))
      const first = yield* runBackfill({ vintage: "first" })
      assert.equal(first.changed, later.changed)
      assert.deepEqual(rounded(yield* stored), original)
    }).pipe(Effect.provide(world)),
  )

  it.live("withdraws the days that have a composite no more, and no others", () =>
    Effect.gen(function* () {
      const outcome = yield* filled
      const original = yield* runBackfill({ vintage: "latest" })
      assert.equal(original.withdrawn, 0)
      // Constant values have no z-score; if both metrics are constant, the days in between have no
      // composite.
      const { observations } = demoOf(yield* today)
      const [from, to] = [dayOf("2015-01-01"), dayOf("2020-01-01")]
      for (const id of ids) {
        const days = Array.from(observations.get(id)?.days ?? [])
        const flat = days.filter((day) => from <= day && day < to)
        outcome.tell.set(id, Object.fromEntries(flat.map((day) => [dateOf(day), 1])))
      }
      yield* ingests(outcome, { metrics: metricsOf(...ids) })
      const since = dayOf("2019-06-03")
      const part = yield* runBackfill({ vintage: "latest", since })
      assert.isAbove(part.withdrawn, 100)
      const before_it = yield* rows(
        `select max(day) as day from capital_composite where day < ${since}`,
      )
      assert.deepEqual(before_it, [{ day: dayOf("2019-05-31") }])
      const rest = yield* runBackfill({ vintage: "latest" })
      assert.isAbove(rest.withdrawn, 50)
      assert.equal(rest.days, original.days - part.withdrawn - rest.withdrawn)
      const now = rounded(yield* stored)
      assert.deepEqual(now, rounded(yield* computed("latest")))
      const { rebuild } = yield* CapitalPressureModel
      yield* waitForFile(yield* rebuild)
      assert.deepEqual(rounded(yield* stored), now)
      const before = yield* head
      const again = { ...rest, changed: 0, withdrawn: 0 }
      assert.deepEqual(yield* runBackfill({ vintage: "latest" }), again)
      assert.equal(yield* head, before)
      // With the first vintages the days are back.
      const back = yield* runBackfill({ vintage: "first" })
      assert.deepEqual([back.days, back.withdrawn], [original.days, 0])
    }).pipe(Effect.provide(world)),
  )

  it.live("begins at the given day, and keeps earlier days", () =>
    Effect.gen(function* () {
      yield* filled
      const since = dayOf("2024-01-01")
      const report = yield* runBackfill({ vintage: "latest", since })
      assert.equal(report.first, "2024-01-01")
      const [count] = yield* rows(
        `select count(*) as n from capital_composite where day < ${since}`,
      )
      assert.deepEqual(count, { n: 0 })
      const all = yield* runBackfill({ vintage: "latest" })
      assert.equal(all.changed, all.days - report.days)
    }).pipe(Effect.provide(world)),
  )

  it.live("has nothing to say of an empty file", () =>
    Effect.gen(function* () {
      const report = yield* runBackfill({ vintage: "latest" })
      assert.deepEqual(report, { days: 0, changed: 0, withdrawn: 0, first: null, last: null })
      assert.equal(yield* head, 0)
    }).pipe(Effect.provide(world)),
  )

  it.live("says which file it cannot read", () =>
    Effect.gen(function* () {
      const file = DashboardFile.of({ path: "/nowhere/at.sqlite", position: Effect.succeed(0) })
      const failure = yield* Effect.flip(
        Effect.provideService(runBackfill({ vintage: "latest" }), DashboardFile, file),
      )
      assert.match(failure.message ?? "", /^\/nowhere\/at\.sqlite cannot be read: /)
    }).pipe(Effect.provide(world)),
  )
})

describe("the line of a backfill", () => {
  const report = { days: 5, changed: 2, first: "2026-11-16", last: "2026-11-20" }
  it("says how many days were withdrawn, where some were", () => {
    const of_days = "5 days from 2026-11-16 to 2026-11-20, 2 changed"
    assert.equal(backfillLine({ ...report, withdrawn: 0 }), of_days)
    assert.equal(backfillLine({ ...report, withdrawn: 3 }), `${of_days}, 3 withdrawn`)
    const none = { days: 0, changed: 0, withdrawn: 3, first: null, last: null }
    assert.equal(backfillLine(none), "no day has a composite, 0 changed, 3 withdrawn")
  })
})

describe("a backfill of nothing", () => {
  it("says that it begins later than the last day that can have a composite", () => {
    // A Saturday: the computed composite ends on Friday.
    const saturday = dayOf("2026-11-21")
    const late = (date: string) =>
      `--since ${date} is after 2026-11-20, the last day that can have a composite`
    assert.equal(sinceTooLate("2030-01-01", saturday), late("2030-01-01"))
    assert.equal(sinceTooLate("2026-11-21", saturday), late("2026-11-21"))
    assert.isUndefined(sinceTooLate("2026-11-20", saturday))
    assert.isUndefined(sinceTooLate("2026-11-23", dayOf("2026-11-23")))
    assert.isUndefined(sinceTooLate(undefined, saturday))
  })

  it("says the history that a metric needs, and from which day on nothing was found", () => {
    const needs =
      "a metric needs 3 years of values, hy_spread 1 year, year-on-year growth " + "4 years"
    assert.equal(
      noCompositeReason(undefined),
      `no day has a composite yet: ingest metrics first; ${needs}`,
    )
    assert.equal(
      noCompositeReason("2026-11-02"),
      `no day since 2026-11-02 has a composite: ingest newer values or more history; ${needs}`,
    )
  })

  it("is right about the history of each metric that votes", () => {
    const step_days = { daily: 1, weekly: 7, monthly: 30, quarterly: 91 } as const
    const last = dayOf("2026-06-30")
    for (const metric of metrics.filter((one) => one.include_in_composite && !one.stub)) {
      const { metric_id, cadence, indicator_kind, publication_lag } = metric
      const years = metric_id === "hy_spread" ? 1 : indicator_kind === "yoy" ? 4 : 3
      const daysWith = (history: number) => {
        const step = step_days[cadence]
        const length = Math.ceil(history / step) + 1
        const days = Int32Array.from({ length }, (_, at) => last - (length - 1 - at) * step)
        const values = Float64Array.from(days, (day) => 100 + (day % 50))
        // A week after publication, so that no weekend is in between.
        const now = last + publication_lag + 7
        const known = compositeHistory(new Map([[metric_id, { days, values }]]), now - 3, now)
        return known.days.length
      }
      const year_days = 366
      assert.isAbove(daysWith(years * year_days), 0, metric_id)
      assert.equal(daysWith(years * year_days - 200), 0, metric_id)
    }
  })
})

describe("waiting for the file", () => {
  const still = (position: number) =>
    DashboardFile.of({ path: "/data/x.sqlite", position: Effect.succeed(position) })

  it.live("ends when the file shows it", () =>
    Effect.gen(function* () {
      let at = 0
      const moving = DashboardFile.of({ path: "", position: Effect.sync(() => at++) })
      yield* Effect.provideService(waitForFile(4, 1000), DashboardFile, moving)
      assert.isAtLeast(at, 5)
    }),
  )

  it.live("is given up when the file makes no progress, and reports it", () =>
    Effect.gen(function* () {
      const waited = yield* Effect.result(
        Effect.provideService(waitForFile(4, 50), DashboardFile, still(3)),
      )
      assert.isTrue(Result.isFailure(waited))
      if (Result.isFailure(waited))
        assert.match(waited.failure.message, /^Everything is stored, but/)
    }),
  )
})
