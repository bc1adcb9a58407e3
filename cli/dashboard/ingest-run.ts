/**
 * Runs one ingest: turns the publishers' data into commands, several feeds at a time. A failed feed
 * leaves the stored data unchanged, and the others continue.
 *
 * Killed at any point and repeated, it reaches the same result as an uninterrupted run.
 * Source: document 3 §1 A; decisions of document 3, dashboard storage.
 */
import { Effect, Stream } from "effect"
import { Feed } from "#actors/capital-pressure/feed.ts"
import { FeedFailed, Feeds, unchanged } from "#actors/capital-pressure/feeds.ts"
import { Observation } from "#actors/capital-pressure/observation.ts"
import { Price } from "#actors/capital-pressure/price.ts"
import { Watchlist, watchlist_id } from "#actors/capital-pressure/watchlist.ts"
import { demoMixed } from "#actors/capital-pressure/year.ts"
import { address } from "#actors/commands.ts"
import { stateAfter } from "#actors/host.ts"
import {
  type FeedCounts,
  type FeedData,
  type FeedRecorder,
  feedRecorder,
} from "#cli/dashboard/ingest-report.ts"
import { Log } from "#events/log.ts"
import { dateOf, dayOf, yearOf } from "#schemas/capital-pressure/day.ts"
import { detailOf } from "#schemas/capital-pressure/feed.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { ObserveMetric, observationId } from "#schemas/capital-pressure/observation.ts"
import { index_ticker, QuotePrices } from "#schemas/capital-pressure/price.ts"
import {
  benchmark,
  SetWatchlist,
  type WatchlistTarget,
  watchlist,
} from "#schemas/capital-pressure/watchlist.ts"

/** Concurrent feeds: most of them wait for different publishers. */
const feeds_at_once = 6

/** Concurrent tickers: all from one publisher. */
const tickers_at_once = 2

/** Tickers whose closing prices are stored. */
const tickers: ReadonlyArray<string> = [
  ...watchlist.map(({ ticker }) => ticker),
  benchmark,
  index_ticker,
]

/** Feeds to ingest. */
export interface IngestOptions {
  readonly metrics: ReadonlyArray<Metric>
  readonly prices: boolean
  /** Reads the targets; undefined leaves the watchlist as it is. */
  readonly targets: Effect.Effect<ReadonlyArray<WatchlistTarget>, FeedFailed> | undefined
  /** Days since 1970-01-01; undefined fetches everything. */
  readonly since: number | undefined
  /** Whether the data is generated. */
  readonly demo: boolean
}

/** Result of one feed: its counts, or why it could not be read. */
export type FeedReport =
  | ({
      readonly feed: string
      readonly outcome: "ingested"
      readonly is_unchanged: boolean
    } & FeedCounts)
  | { readonly feed: string; readonly outcome: "failed"; readonly detail: string }

export interface IngestReport {
  readonly feeds: ReadonlyArray<FeedReport>
  /** Log position of the last write. */
  readonly position: number
}

/** Number of feeds to ingest. */
export const countOf = ({ metrics, prices, targets }: IngestOptions) =>
  metrics.length + (prices ? 1 : 0) + (targets === undefined ? 0 : 1)

/** Ingests all selected feeds; calls `onDone` after each. */
export const runIngest = Effect.fnUntraced(function* (
  options: IngestOptions,
  onDone: (report: FeedReport) => Effect.Effect<void>,
) {
  yield* refuseMixedData(options.demo)
  const recorder = yield* feedRecorder(options.demo)
  const reportFeed = <E, R>(feed: string, of: Effect.Effect<FeedReport, E | FeedFailed, R>) =>
    of.pipe(
      Effect.catchIf(isFeedFailed, ({ detail }) =>
        Effect.as(recorder.recordFailure(feed, detail), {
          feed,
          outcome: "failed",
          detail,
        } as const),
      ),
      Effect.tap(onDone),
    )
  // The smallest first: the first commit of a folder records whether its data is generated.
  const { targets } = options
  const first =
    targets === undefined
      ? []
      : [yield* reportFeed("watchlist", targetsFeed(recorder, targets, options.demo))]
  const feeds = [
    ...options.metrics.map((metric) =>
      reportFeed(metric.metric_id, metricFeed(recorder, metric, options)),
    ),
    ...(options.prices ? [reportFeed("prices", pricesFeed(recorder, options))] : []),
  ]
  const others = yield* Effect.all(feeds, { concurrency: feeds_at_once })
  const report: IngestReport = { feeds: [...others, ...first], position: recorder.position() }
  return report
})

/** Refuses to mix generated with real data in one folder, even across metrics. */
const refuseMixedData = Effect.fnUntraced(function* (demo: boolean) {
  const log = yield* Log
  yield* Stream.runForEach(log.lasts(Feed.name), (recorded) =>
    Effect.gen(function* () {
      const state = yield* stateAfter(log, Feed, recorded)
      // The decider's context type is deferred: its chart defines it.
      const { demo: known } = state.context as { readonly demo: boolean | null }
      if (known !== null && known !== demo) return yield* demoMixed(demo)
    }),
  )
})

const feedReport = (feed: string, counts: FeedCounts, is_unchanged = false): FeedReport => ({
  feed,
  outcome: "ingested",
  is_unchanged,
  ...counts,
})

/** Groups a series by year; each year is one aggregate. */
const yearsOf = <A extends { readonly ts: string }>(
  days: Int32Array,
  make: (ts: string, index: number) => A,
) => {
  const dated = Array.from(days, (day, index) => make(dateOf(day), index))
  return [...Map.groupBy(dated, ({ ts }) => yearOf(ts))]
}

const isFeedFailed = (failure: unknown): failure is FeedFailed => failure instanceof FeedFailed

const metricFeed = Effect.fnUntraced(function* (
  recorder: FeedRecorder,
  metric: Metric,
  options: IngestOptions,
) {
  const { metric_id } = metric
  const { demo, since } = options
  const feeds = yield* Feeds
  const log = yield* Log
  // If the log has no data of the feed, cached request state belongs to another log.
  const is_known = (yield* log.load(`${Feed.name}.${metric_id}`)) !== undefined
  if (!is_known) yield* feeds.reset(metric)
  const fetched = yield* feeds.fetch(metric, since)
  if (fetched === unchanged) {
    const nothing: FeedData = { commands: [], newest: undefined }
    return feedReport(metric_id, yield* recorder.recordIngest(metric_id, nothing), true)
  }
  const { days, values, acknowledge } = fetched
  const years = yearsOf(days, (ts, index) => ({ ts, value: values[index] ?? Number.NaN }))
  const commands = years.map(([year, observations]) => {
    const command = ObserveMetric.make({ observations, demo })
    return address(Observation, observationId(metric_id, year), command)
  })
  // Drop the cached request state first, so that a crash below leads to a full fetch.
  yield* feeds.reset(metric)
  const report = yield* recorder.recordIngest(metric_id, { commands, newest: days.at(-1) })
  yield* acknowledge
  return feedReport(metric_id, report)
})

const targetsFeed = Effect.fnUntraced(function* (
  recorder: FeedRecorder,
  read: NonNullable<IngestOptions["targets"]>,
  demo: boolean,
) {
  const targets = yield* read
  const commands = [address(Watchlist, watchlist_id, SetWatchlist.make({ targets, demo }))]
  const dates = targets.flatMap(({ set_on }) => (set_on === null ? [] : [dayOf(set_on)]))
  const newest = dates.length === 0 ? undefined : Math.max(...dates)
  return feedReport("watchlist", yield* recorder.recordIngest("watchlist", { commands, newest }))
})

/** Records one ticker's prices, even if other tickers fail. */
const ingestTicker = Effect.fnUntraced(function* (
  recorder: FeedRecorder,
  ticker: string,
  { since, demo }: IngestOptions,
) {
  const feeds = yield* Feeds
  const { days, close, adjusted } = yield* feeds.prices(ticker, since)
  const years = yearsOf(days, (ts, index) => ({
    ts,
    close: close[index] ?? Number.NaN,
    adjusted: adjusted[index] ?? Number.NaN,
  }))
  const commands = years.map(([year, prices]) =>
    address(Price, observationId(ticker, year), QuotePrices.make({ prices, demo })),
  )
  return yield* recorder.record({ commands, newest: days.at(-1) })
})

const pricesFeed = Effect.fnUntraced(function* (recorder: FeedRecorder, options: IngestOptions) {
  const failed: Array<FeedFailed> = []
  const all = yield* Effect.forEach(
    tickers,
    (ticker) =>
      Effect.catchIf(ingestTicker(recorder, ticker, options), isFeedFailed, (failure) =>
        Effect.as(
          Effect.sync(() => failed.push(failure)),
          no_changes,
        ),
      ),
    { concurrency: tickers_at_once },
  )
  const [first] = failed
  if (first !== undefined) {
    const detail = `${failed.length} of ${tickers.length} tickers failed. ${first.detail}`
    return yield* new FeedFailed({ detail: detailOf(detail) })
  }
  const sum = all.reduce(addCounts)
  yield* recorder.recordTotals("prices", sum)
  return feedReport("prices", sum)
})

const no_changes: FeedCounts = { observed: 0, revised: 0, newest: null }

const addCounts = (one: FeedCounts, other: FeedCounts): FeedCounts => ({
  observed: one.observed + other.observed,
  revised: one.revised + other.revised,
  newest: (one.newest ?? "") > (other.newest ?? "") ? one.newest : other.newest,
})
