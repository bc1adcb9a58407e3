/**
 * Feeds: the port to the publishers of the dashboard's data.
 *
 * Source: document 3 §1 A; decisions of document 3, metric registry; market facts, A1.4.
 */
import { Context, type Effect, Schema } from "effect"
import { Detail } from "#schemas/capital-pressure/feed.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"

/**
 * A publisher is unreachable or its response is unreadable; none of it may be stored. `detail`
 * names the source, the reason and a remedy, in at most 500 characters and without keys.
 */
export class FeedFailed extends Schema.TaggedError<FeedFailed>()("FeedFailed", {
  detail: Detail,
}) {}

/** The publisher reports no changes since the last ingest. */
export const unchanged = "unchanged"
export type Unchanged = typeof unchanged

/** Raw values: no growth rates, no z-scores. Days since 1970-01-01, ascending and unique. */
export interface FetchedValues {
  readonly days: Int32Array
  readonly values: Float64Array
  /**
   * Run this once every value is in the log, so that later fetches request only changes. Otherwise
   * the publisher sends everything again, which is harmless.
   */
  readonly acknowledge: Effect.Effect<void>
}

/** Closes in USD; `adjusted` is net of splits and dividends. Days are ascending and unique. */
export interface FetchedPrices {
  readonly days: Int32Array
  readonly close: Float64Array
  readonly adjusted: Float64Array
}

export class Feeds extends Context.Service<
  Feeds,
  {
    /**
     * Fetches a metric's values from day `since`, or all of them. With `since` there may be none.
     * Fails with FeedFailed for a stub, which has no feed.
     */
    readonly fetch: (
      metric: Metric,
      since?: number,
    ) => Effect.Effect<FetchedValues | Unchanged, FeedFailed>
    /**
     * Makes the next `fetch` of the metric request everything. Run this before storing values that
     * differ from the last ingest. If it fails, nothing may be stored.
     */
    readonly reset: (metric: Metric) => Effect.Effect<void, FeedFailed>
    /**
     * Fetches closes of a ticker or of `index_ticker`: at least the last available year, even if
     * `since` is later, because each dividend changes all earlier adjusted closes.
     */
    readonly prices: (ticker: string, since?: number) => Effect.Effect<FetchedPrices, FeedFailed>
  }
>()("actors/capital-pressure/Feeds") {}
