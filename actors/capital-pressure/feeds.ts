/**
 * Feeds, the port to the publishers of what the dashboard shows.
 *
 * Source: document 3 §1 A; decisions of document 3, metric registry; market facts, A1.4.
 */
import { Context, type Effect, Schema } from "effect"
import { Detail } from "#schemas/capital-pressure/feed.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"

/**
 * A publisher could not be asked, or its answer not be read: nothing of it may be stored. `detail`
 * names the source, the reason and what to do next, in at most 500 characters and without any key.
 */
export class FeedFailed extends Schema.TaggedError<FeedFailed>()("FeedFailed", {
  detail: Detail,
}) {}

/** The publisher says that it has nothing else than what was kept the last time. */
export const unchanged = "unchanged"
export type Unchanged = typeof unchanged

/** Values as they are stored: no growth, no z-score. Days since 1970-01-01 ascend, each once. */
export interface Fetched {
  readonly days: Int32Array
  readonly values: Float64Array
  /**
   * To be run once all of it is in the log: from then on the publisher is asked only for what
   * changed. Whoever never runs it is told everything again, which is never wrong.
   */
  readonly kept: Effect.Effect<void>
}

/** Closes in USD; `adjusted` has splits and dividends taken out. Days ascend, each once. */
export interface FetchedPrices {
  readonly days: Int32Array
  readonly close: Float64Array
  readonly adjusted: Float64Array
}

export class Feeds extends Context.Service<
  Feeds,
  {
    /**
     * What the publisher tells of a metric, from the day `since` on; all that it has without one.
     * It may be nothing where `since` is given. A stub has no feed: FeedFailed.
     */
    readonly fetch: (
      metric: Metric,
      since?: number,
    ) => Effect.Effect<Fetched | Unchanged, FeedFailed>
    /**
     * Makes the next `fetch` of the metric from its publisher tell everything, whatever was kept of
     * it: to be run before other values are stored than those that were kept. FeedFailed where it
     * cannot be done, and then nothing may be stored.
     */
    readonly forget: (metric: Metric) => Effect.Effect<void, FeedFailed>
    /**
     * Closes of a ticker, or of `index_ticker`. At least the last year that there is, also where
     * `since` is later: each dividend changes all adjusted closes before it.
     */
    readonly prices: (ticker: string, since?: number) => Effect.Effect<FetchedPrices, FeedFailed>
  }
>()("actors/capital-pressure/Feeds") {}
