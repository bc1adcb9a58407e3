/**
 * `almanac ingest`: records the publishers' data of the dashboard's metrics in the log.
 *
 * Source: document 3 §1 A; decisions of document 3, dashboard storage and metric registry.
 */

import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Console, Effect, Layer, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { FeedFailed, type Feeds } from "#actors/capital-pressure/feeds.ts"
import { summaries } from "#cli/client/summaries.ts"
import { backfillLine } from "#cli/dashboard/backfill-composite.ts"
import { runBackfill } from "#cli/dashboard/composite-run.ts"
import { waitForFile } from "#cli/dashboard/dashboard-file.ts"
import {
  lineOf,
  outcomeOf,
  rewordLogFailures,
  summary,
  withInterruptExitCode,
} from "#cli/dashboard/ingest-outcome.ts"
import { countOf, type IngestOptions, runIngest } from "#cli/dashboard/ingest-run.ts"
import { capitalSession } from "#cli/dashboard/session.ts"
import { demoFeeds, demoTargets } from "#cli/demo/feeds.ts"
import { progressTo } from "#cli/progress.ts"
import { settings } from "#cli/root.ts"
import { CalendarDate, dayOf } from "#schemas/capital-pressure/day.ts"
import { detailOf, other_feeds } from "#schemas/capital-pressure/feed.ts"
import { findMetric, metrics } from "#schemas/capital-pressure/registry.ts"
import { nearest } from "#schemas/setting.ts"
import type { Settings } from "#schemas/settings.ts"
import { version } from "#server/program.ts"

/** A flag's value is invalid: exit code 1. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

/** Maximum number of metrics and other feeds on one command line. */
const metric_flags_max = 100

const live = metrics.filter(({ stub }) => stub === null)

interface Flags {
  readonly metric: ReadonlyArray<string>
  readonly since: Option.Option<string>
  readonly source: Option.Option<string>
  readonly demo: boolean
}

const failFlag = (message: string) => Effect.fail(new FlagUnusable({ message }))

/** Why the feed cannot be requested; undefined if it can. */
const problemOf = (id: string) => {
  const metric = findMetric(id)
  if (metric !== undefined) {
    return metric.stub === null ? undefined : `${id} has no feed: ${metric.stub}`
  }
  if (other_feeds.some((feed) => feed === id)) return undefined
  const ids = [...live.map(({ metric_id }) => metric_id), ...other_feeds]
  const near = nearest(id, ids)
  return `unknown metric ${id}${near === undefined ? "" : `; did you mean ${near}?`}`
}

/** The folder of `--source file:DIR`; undefined without it. */
const folderOf = Effect.fnUntraced(function* (source: Option.Option<string>) {
  if (Option.isNone(source)) return undefined
  const [, folder = ""] = /^file:(.+)$/.exec(source.value) ?? []
  if (folder === "") return yield* failFlag("--source must be file:DIR, a folder of CSV files")
  const path = resolve(folder)
  return existsSync(path) ? path : yield* failFlag(`--source: folder ${path} does not exist`)
})

const checkedFolder = Effect.fnUntraced(function* ({ metric, since, source, demo }: Flags) {
  for (const id of metric) {
    const problem = problemOf(id)
    if (problem !== undefined) return yield* failFlag(problem)
  }
  const is_narrowed = metric.length > 0 || Option.isSome(since) || Option.isSome(source)
  if (demo && is_narrowed)
    return yield* failFlag("--demo generates all data and excludes --metric, --since and --source")
  return yield* folderOf(source)
})

/** Imports the feeds on demand: their clients are a third of the code of a command. */
const feedsOf = (configured: Settings, folder: string | undefined) =>
  Layer.unwrap(
    Effect.promise(async (): Promise<Layer.Layer<Feeds>> => {
      const { capital, data } = configured
      const cache_folder = join(data.dir, "feeds")
      if (folder !== undefined) {
        const { feedsFile } = await import("#adapters/capital-pressure/feeds-file.ts")
        return feedsFile(folder, cache_folder)
      }
      const { feedsHttp } = await import("#adapters/capital-pressure/feeds-http.ts")
      return feedsHttp({ ...capital, version, folder: cache_folder })
    }),
  )

/** Reads the operator's watchlist file; an error in it fails only the watchlist feed. */
const targetsOf = ({ capital, data }: Settings) =>
  Effect.gen(function* () {
    const { readWatchlist } = yield* Effect.promise(
      () => import("#adapters/capital-pressure/watchlist-file.ts"),
    )
    const path = capital.watchlist === "" ? join(data.dir, "watchlist.json") : capital.watchlist
    return yield* Effect.mapError(
      readWatchlist(resolve(path)),
      ({ message }) => new FeedFailed({ detail: detailOf(message) }),
    )
  })

const optionsOf = (configured: Settings, { metric, since, demo }: Flags): IngestOptions => {
  const isSelected = (id: string) => metric.length === 0 || metric.includes(id)
  const targets = demo ? demoTargets : targetsOf(configured)
  return {
    metrics: live.filter(({ metric_id }) => isSelected(metric_id)),
    prices: isSelected("prices"),
    targets: isSelected("watchlist") ? targets : undefined,
    since: Option.getOrUndefined(Option.map(since, dayOf)),
    demo,
  }
}

/** Ingests; for a demo it also computes the composite, so that the page has data at once. */
const runWithProgress = Effect.fnUntraced(function* (options: IngestOptions) {
  const progress = progressTo(countOf(options))
  return yield* Effect.gen(function* () {
    const report = yield* runIngest(options, (feed) => progress.done(lineOf(feed)))
    yield* waitForFile(report.position)
    if (!options.demo) return { feeds: report.feeds, composite: undefined }
    const onProgress = (done: number, total: number) => progress.at("composite", done, total)
    const composite = yield* runBackfill({ vintage: "latest", onProgress })
    return { feeds: report.feeds, composite }
  }).pipe(Effect.ensuring(progress.end))
})

const demo_note =
  "This is generated data; none of it was ever published, and every page is marked accordingly. " +
  "For real data use another data folder (ALMANAC_DATA_DIR)."

export const ingest = Command.make(
  "ingest",
  {
    metric: Flag.String("metric").pipe(
      Flag.withDescription("Only this metric, or prices or watchlist (repeatable)"),
      Flag.between(0, metric_flags_max),
    ),
    since: Flag.String("since").pipe(
      Flag.withDescription("First date, YYYY-MM-DD (default: all published data)"),
      Flag.withSchema(CalendarDate),
      Flag.optional,
    ),
    source: Flag.String("source").pipe(
      Flag.withDescription("file:DIR to read <metric>.csv and <TICKER>.csv from a folder"),
      Flag.optional,
    ),
    demo: Flag.Boolean("demo").pipe(
      Flag.withDescription("Generate 20 years of data, which every page marks as generated"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn(function* (flags) {
    const configured = yield* settings
    const folder = yield* checkedFolder(flags)
    const options = optionsOf(configured, flags)
    const { feeds, composite } = yield* runWithProgress(options).pipe(
      Effect.provide(flags.demo ? demoFeeds : feedsOf(configured, folder)),
      Effect.provide(capitalSession(configured)),
      rewordLogFailures,
    )
    yield* Console.log(summary(feeds))
    if (composite !== undefined) yield* Console.log(`composite: ${backfillLine(composite)}`)
    if (flags.demo) yield* Console.log(demo_note)
    yield* outcomeOf(feeds)
  }, withInterruptExitCode),
).pipe(
  Command.withDescription(
    `${summaries.ingest}: exit code 0, 2 if some feeds failed, 1 if all failed or the ` +
      "command line is invalid, 130 if it was interrupted",
  ),
  Command.withExamples([
    { command: "almanac ingest", description: "All feeds, from their publishers" },
    {
      command: "almanac ingest --metric nfci --metric prices --since 2026-01-01",
      description: "Two feeds, since 2026",
    },
    { command: "almanac ingest --demo", description: "Generated data for trying the dashboard" },
    {
      command: "almanac ingest --source file:./csv",
      description: "From your own files, without network access",
    },
  ]),
)
