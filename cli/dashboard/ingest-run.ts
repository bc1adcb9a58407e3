/**
 * One ingest: what publishers tell becomes commands, feed by feed and several at a time. A feed
 * that fails leaves what is stored as it is, and the others go on.
 *
 * Killed anywhere and repeated, it ends where one that was left alone does.
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
import { type Teller, type Telling, type Told, teller } from "#cli/dashboard/ingest-report.ts"
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

/** Feeds at a time: each waits for another publisher, mostly. */
const feeds_at_once = 6

/** Tickers at a time: all of one publisher. */
const tickers_at_once = 2

/** Whose closes are kept. */
const tickers: ReadonlyArray<string> = [
  ...watchlist.map(({ ticker }) => ticker),
  benchmark,
  index_ticker,
]

/** What is to be ingested. */
export interface Wanted {
  readonly metrics: ReadonlyArray<Metric>
  readonly prices: boolean
  /** Reads the targets; undefined leaves the watchlist as it is. */
  readonly targets: Effect.Effect<ReadonlyArray<WatchlistTarget>, FeedFailed> | undefined
  /** Days since 1970-01-01; undefined asks for everything. */
  readonly since: number | undefined
  /** Whether it is generated. */
  readonly demo: boolean
}

/** How one feed went: what it told, or why it could not be read. */
export type FeedReport =
  | ({ readonly feed: string; readonly outcome: "ingested"; readonly is_unchanged: boolean } & Told)
  | { readonly feed: string; readonly outcome: "failed"; readonly detail: string }

export interface IngestReport {
  readonly feeds: ReadonlyArray<FeedReport>
  /** The log's position that shows all of it. */
  readonly position: number
}

/** How many feeds there are to go through. */
export const countOf = ({ metrics, prices, targets }: Wanted) =>
  metrics.length + (prices ? 1 : 0) + (targets === undefined ? 0 : 1)

/** Goes through all that is wanted; `onDone` hears of each feed as it ends. */
export const runIngest = Effect.fnUntraced(function* (
  wanted: Wanted,
  onDone: (report: FeedReport) => Effect.Effect<void>,
) {
  yield* refuseOtherKind(wanted.demo)
  const told = yield* teller(wanted.demo)
  const reported = <E, R>(feed: string, of: Effect.Effect<FeedReport, E | FeedFailed, R>) =>
    of.pipe(
      Effect.catchIf(isFeedFailed, ({ detail }) =>
        Effect.as(told.failed(feed, detail), { feed, outcome: "failed", detail } as const),
      ),
      Effect.tap(onDone),
    )
  // The smallest first: a folder says from its first commit on whether it holds generated data.
  const { targets } = wanted
  const first =
    targets === undefined
      ? []
      : [yield* reported("watchlist", targetsFeed(told, targets, wanted.demo))]
  const feeds = [
    ...wanted.metrics.map((metric) => reported(metric.metric_id, metricFeed(told, metric, wanted))),
    ...(wanted.prices ? [reported("prices", pricesFeed(told, wanted))] : []),
  ]
  const others = yield* Effect.all(feeds, { concurrency: feeds_at_once })
  const report: IngestReport = { feeds: [...others, ...first], position: told.position() }
  return report
})

/** Generated data never meet real ones, not even in a metric that has none yet. */
const refuseOtherKind = Effect.fnUntraced(function* (demo: boolean) {
  const log = yield* Log
  yield* Stream.runForEach(log.lasts(Feed.name), (recorded) =>
    Effect.gen(function* () {
      const state = yield* stateAfter(log, Feed, recorded)
      // The decider's context is deferred: it is that of its chart.
      const { demo: known } = state.context as { readonly demo: boolean | null }
      if (known !== null && known !== demo) return yield* demoMixed(demo)
    }),
  )
})

const ingested = (feed: string, told: Told, is_unchanged = false): FeedReport => ({
  feed,
  outcome: "ingested",
  is_unchanged,
  ...told,
})

/** A series as the values of its years: one aggregate each. */
const yearsOf = <A extends { readonly ts: string }>(
  days: Int32Array,
  make: (ts: string, index: number) => A,
) => {
  const dated = Array.from(days, (day, index) => make(dateOf(day), index))
  return [...Map.groupBy(dated, ({ ts }) => yearOf(ts))]
}

const isFeedFailed = (failure: unknown): failure is FeedFailed => failure instanceof FeedFailed

const metricFeed = Effect.fnUntraced(function* (told: Teller, metric: Metric, wanted: Wanted) {
  const { metric_id } = metric
  const { demo, since } = wanted
  const feeds = yield* Feeds
  const log = yield* Log
  // What was kept to ask with is of another log where this one knows nothing of the feed.
  const is_known = (yield* log.load(`${Feed.name}.${metric_id}`)) !== undefined
  if (!is_known) yield* feeds.forget(metric)
  const fetched = yield* feeds.fetch(metric, since)
  if (fetched === unchanged) {
    const nothing: Telling = { commands: [], newest: undefined }
    return ingested(metric_id, yield* told.ingested(metric_id, nothing), true)
  }
  const { days, values, kept } = fetched
  const years = yearsOf(days, (ts, index) => ({ ts, value: values[index] ?? Number.NaN }))
  const commands = years.map(([year, observations]) => {
    const command = ObserveMetric.make({ observations, demo })
    return address(Observation, observationId(metric_id, year), command)
  })
  // What was kept before stands for what is stored now: killed after this, all is asked for again.
  yield* feeds.forget(metric)
  const report = yield* told.ingested(metric_id, { commands, newest: days.at(-1) })
  yield* kept
  return ingested(metric_id, report)
})

const targetsFeed = Effect.fnUntraced(function* (
  told: Teller,
  read: NonNullable<Wanted["targets"]>,
  demo: boolean,
) {
  const targets = yield* read
  const commands = [address(Watchlist, watchlist_id, SetWatchlist.make({ targets, demo }))]
  const dates = targets.flatMap(({ set_on }) => (set_on === null ? [] : [dayOf(set_on)]))
  const newest = dates.length === 0 ? undefined : Math.max(...dates)
  return ingested("watchlist", yield* told.ingested("watchlist", { commands, newest }))
})

/** What a ticker tells is kept, whatever becomes of the others. */
const tickerTold = Effect.fnUntraced(function* (
  told: Teller,
  ticker: string,
  { since, demo }: Wanted,
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
  return yield* told.tell({ commands, newest: days.at(-1) })
})

const pricesFeed = Effect.fnUntraced(function* (told: Teller, wanted: Wanted) {
  const failed: Array<FeedFailed> = []
  const all = yield* Effect.forEach(
    tickers,
    (ticker) =>
      Effect.catchIf(tickerTold(told, ticker, wanted), isFeedFailed, (failure) =>
        Effect.as(
          Effect.sync(() => failed.push(failure)),
          no_news,
        ),
      ),
    { concurrency: tickers_at_once },
  )
  const [first] = failed
  if (first !== undefined) {
    const detail = `${failed.length} of ${tickers.length} tickers failed. ${first.detail}`
    return yield* new FeedFailed({ detail: detailOf(detail) })
  }
  const sum = all.reduce(joined)
  yield* told.summed("prices", sum)
  return ingested("prices", sum)
})

const no_news: Told = { observed: 0, revised: 0, newest: null }

const joined = (one: Told, other: Told): Told => ({
  observed: one.observed + other.observed,
  revised: one.revised + other.revised,
  newest: (one.newest ?? "") > (other.newest ?? "") ? one.newest : other.newest,
})
