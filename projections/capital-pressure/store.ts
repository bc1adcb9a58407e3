/**
 * The dashboard's data as typed arrays, in the order of their days.
 *
 * Readers of the database (a thread of the API, `backfill-composite`) produce it, and every view is
 * a pure function of it and of the day that counts as today.
 */
import type { JobId } from "#schemas/capital-pressure/schedule.ts"
import type { WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"

/** Ascending, distinct days since 1970-01-01, and the value of each. */
export interface Series {
  readonly days: Int32Array
  readonly values: Float64Array
}

/** Closes in USD; `adjusted` is adjusted for splits and dividends. */
export interface PriceSeries {
  readonly days: Int32Array
  readonly close: Float64Array
  readonly adjusted: Float64Array
}

/** Composite days; NaN if a tier had no data. */
export interface CompositeSeries {
  readonly days: Int32Array
  readonly z: Float64Array
  readonly tiers: readonly [Float64Array, Float64Array, Float64Array, Float64Array]
}

/** Result of ingesting a metric, `prices` or `watchlist`. Times: RFC 3339 in UTC. */
export interface FeedRow {
  readonly last_ingested_at: string | null
  readonly last_error_at: string | null
  /** Null after a successful ingest. */
  readonly last_error: string | null
  readonly demo: boolean
}

/** Result of a scheduled job. Times: RFC 3339 in UTC. */
export interface JobRow {
  readonly last_run_at: string | null
  readonly last_success_at: string | null
  readonly last_error_at: string | null
  readonly last_error: string | null
}

export interface Store {
  /** By metric_id; metrics without observations are absent. */
  readonly observations: ReadonlyMap<string, Series>
  /** By ticker. */
  readonly prices: ReadonlyMap<string, PriceSeries>
  readonly composite: CompositeSeries
  readonly feeds: ReadonlyMap<string, FeedRow>
  readonly jobs: ReadonlyMap<JobId, JobRow>
  readonly targets: ReadonlyArray<WatchlistTarget>
}
