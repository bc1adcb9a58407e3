/** An ingest in a test: the log in memory, a real file, and publishers controlled by the test. */
import Sqlite from "better-sqlite3"
import { Effect, Layer, type Scope } from "effect"
import { FeedFailed, Feeds, unchanged } from "#actors/capital-pressure/feeds.ts"
import { host } from "#actors/host.ts"
import { DashboardFile, waitForFile } from "#cli/dashboard/dashboard-file.ts"
import { type IngestOptions, runIngest } from "#cli/dashboard/ingest-run.ts"
import { logMemory } from "#journal"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { findMetric, metrics } from "#schemas/capital-pressure/registry.ts"
import type { WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../programs/nats.ts"

/** A publisher's response for a series: values by date, no changes, or a failure. */
export type Answer = Readonly<Record<string, number>> | "unchanged" | { readonly fails: string }

/** Publishers controlled by a test. */
export interface Publishers {
  /** By metric_id or ticker; missing ones fail. */
  readonly tell: Map<string, Answer>
  /** Metrics whose validators were stored, and those whose validators were discarded. */
  readonly kept: Array<string>
  readonly forgotten: Array<string>
}

export const publishers = (): Publishers => ({ tell: new Map(), kept: [], forgotten: [] })

const seriesOf = (answer: Readonly<Record<string, number>>): Series => {
  const dates = Object.keys(answer).sort()
  return {
    days: Int32Array.from(dates, dayOf),
    values: Float64Array.from(dates, (date) => answer[date] ?? Number.NaN),
  }
}

const isFailure = (answer: Answer): answer is { readonly fails: string } =>
  typeof answer === "object" && typeof answer.fails === "string"

/** Responds or fails as the publisher is set up. */
const responseOf = ({ tell }: Publishers, id: string) => {
  const answer = tell.get(id)
  const fails = answer === undefined ? `${id} has no values.` : isFailure(answer) && answer.fails
  if (answer === undefined || isFailure(answer)) {
    return Effect.fail(new FeedFailed({ detail: String(fails) }))
  }
  return Effect.succeed(answer === "unchanged" ? answer : seriesOf(answer))
}

export const feedsOf = (of: Publishers) =>
  Layer.succeed(Feeds, {
    fetch: ({ metric_id }) =>
      Effect.map(responseOf(of, metric_id), (answer) =>
        answer === "unchanged"
          ? unchanged
          : { ...answer, acknowledge: Effect.sync(() => void of.kept.push(metric_id)) },
      ),
    reset: ({ metric_id }) => Effect.sync(() => void of.forgotten.push(metric_id)),
    prices: (ticker) =>
      Effect.map(responseOf(of, ticker), (answer) => {
        const { days, values } = answer === "unchanged" ? seriesOf({}) : answer
        return { days, close: values, adjusted: values }
      }),
  })

/** The metrics with these ids; without ids, all that have a feed. */
export const metricsOf = (...ids: ReadonlyArray<string>) =>
  ids.length === 0
    ? metrics.filter(({ stub }) => stub === null)
    : ids.flatMap((id) => findMetric(id) ?? [])

export const wanted = (of: Partial<IngestOptions>): IngestOptions => ({
  metrics: [],
  prices: false,
  targets: undefined,
  since: undefined,
  demo: false,
  ...of,
})

export const targets = (target: number): ReadonlyArray<WatchlistTarget> => [
  { ticker: "UNH", target, fwd_pe: null, set_on: null },
]

const fileName = "capital-pressure.sqlite"

/** The log, commands, and the file with its read model, in a folder of their own. */
export const world = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) => {
    const path = `${folder}/${fileName}`
    const model = CapitalPressureModel.layer.pipe(
      Layer.provide(sqlite(folder, new Map([["capital-pressure", path]]))),
    )
    const file = Layer.effect(
      DashboardFile,
      Effect.map(CapitalPressureModel, ({ position }) => ({ path, position })),
    )
    return file.pipe(Layer.provideMerge(model), Layer.provideMerge(host))
  }),
).pipe(Layer.provideMerge(logMemory))

/** Ingests, waits until the file shows the result, and returns the report. */
export const ingests = Effect.fnUntraced(function* (of: Publishers, what: Partial<IngestOptions>) {
  const report = yield* runIngest(wanted(what), () => Effect.void).pipe(Effect.provide(feedsOf(of)))
  yield* waitForFile(report.position)
  return report
})

/** The rows of a query on the file. */
export const rows = (sql: string) =>
  Effect.map(DashboardFile, ({ path }) => {
    const file = new Sqlite(path, { readonly: true })
    try {
      return file.prepare(sql).all()
    } finally {
      file.close()
    }
  })

export type World = Layer.Success<typeof world> | Scope.Scope
