/**
 * What the dashboard's file holds, as it is computed with: typed arrays in the order of their days.
 *
 * Whoever reads the file (a thread of the API, `backfill-composite`) answers this, and everything
 * that is shown is a plain function of it and of the day that counts as today.
 */
import type { JobId } from "#schemas/capital-pressure/schedule.ts"
import type { WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"

/** Ascending days since 1970-01-01, each once, and the value of each. */
export interface Series {
  readonly days: Int32Array
  readonly values: Float64Array
}

/** Closes in USD; `adjusted` has splits and dividends taken out. */
export interface PriceSeries {
  readonly days: Int32Array
  readonly close: Float64Array
  readonly adjusted: Float64Array
}

/** Composite days; NaN where a tier had no data. */
export interface CompositeSeries {
  readonly days: Int32Array
  readonly z: Float64Array
  readonly tiers: readonly [Float64Array, Float64Array, Float64Array, Float64Array]
}

/** How the ingest of a metric, of `prices` or of `watchlist` went. Times: RFC 3339 in UTC. */
export interface FeedRow {
  readonly last_ingested_at: string | null
  readonly last_error_at: string | null
  /** Null after an ingest that went well. */
  readonly last_error: string | null
  readonly demo: boolean
}

/** How a job of the scheduler went. Times: RFC 3339 in UTC. */
export interface JobRow {
  readonly last_run_at: string | null
  readonly last_success_at: string | null
  readonly last_error_at: string | null
  readonly last_error: string | null
}

export interface Store {
  /** By metric_id; a metric without observations is not there. */
  readonly observations: ReadonlyMap<string, Series>
  /** By ticker. */
  readonly prices: ReadonlyMap<string, PriceSeries>
  readonly composite: CompositeSeries
  readonly feeds: ReadonlyMap<string, FeedRow>
  readonly jobs: ReadonlyMap<JobId, JobRow>
  readonly targets: ReadonlyArray<WatchlistTarget>
}
