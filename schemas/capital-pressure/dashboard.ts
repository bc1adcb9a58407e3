/** Responses of the dashboard API. Source: document 3 §2 A; decisions of document 3. */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import {
  DirectionKind,
  IndicatorKind,
  SourceKind,
  Tier,
  VoteDirection,
} from "#schemas/capital-pressure/metric.ts"

/** ISO 8601 in UTC without a time zone. */
export const ZonelessTime = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?$/u),
)

/** A keyword by which pages choose a colour. */
export const SignClass = VoteDirection

export const Vote = Schema.Struct({ direction: VoteDirection, reason: Schema.String })

export const Reading = Schema.Struct({
  metric_id: Schema.String,
  name: Schema.String,
  tier: Tier,
  source: Schema.String,
  unit: Schema.String,
  /** Formatted, with its unit. */
  value: Schema.String,
  /** Formatted change since the previous observation; "unch" if it rounds to zero. */
  delta: Schema.String,
  delta_class: SignClass,
  /** Plain rolling z-score, regardless of direction; null until its window is full. */
  z: Schema.NullOr(Schema.Finite),
  z_label: Schema.String,
  z_class: SignClass,
  as_of: CalendarDate,
  sparkline: Schema.Array(Schema.Finite),
  vote: Vote,
  include_in_composite: Schema.Boolean,
  description: Schema.NullOr(Schema.String),
  /** Beyond the document: older than its cadence allows, and so not counted. */
  stale: Schema.Boolean,
  /** Beyond the document: generated data. */
  demo: Schema.Boolean,
})
export type Reading = typeof Reading.Type

export const Tally = Schema.Struct({ bull: Schema.Int, neutral: Schema.Int, bear: Schema.Int })

export const Composite = Schema.Struct({
  /** Positive means pressure: bear. */
  z: Schema.Finite,
  z_label: Schema.String,
  sign_class: SignClass,
  tally: Tally,
  metrics_total: Schema.Int,
})
export type Composite = typeof Composite.Type

export const TierCard = Schema.Struct({
  tier: Tier,
  name: Schema.String,
  tag: Schema.String,
  cadence: Schema.String,
  avg_z: Schema.NullOr(Schema.Finite),
  metrics: Schema.Array(Reading),
})
export type TierCard = typeof TierCard.Type

export const CompositePoint = Schema.Struct({
  ts: CalendarDate,
  z: Schema.Finite,
  index_close: Schema.NullOr(Schema.Finite),
  /** By tier, "1" to "4"; tiers without data on that day are absent. */
  tier_zs: Schema.Record(Schema.Literals(["1", "2", "3", "4"]), Schema.optionalKey(Schema.Finite)),
})
export type CompositePoint = typeof CompositePoint.Type

export const Dashboard = Schema.Struct({
  composite: Schema.NullOr(Composite),
  tiers: Schema.Array(TierCard),
  composite_history: Schema.Array(CompositePoint),
  /** Beyond the document: whether any of its data is generated. */
  demo: Schema.Boolean,
})
export type Dashboard = typeof Dashboard.Type

export const MetricHistory = Schema.Struct({
  metric_id: Schema.String,
  points: Schema.Array(Schema.Struct({ ts: CalendarDate, value: Schema.Finite })),
})
export type MetricHistory = typeof MetricHistory.Type

export const MetricDetail = Schema.Struct({
  metric_id: Schema.String,
  name: Schema.String,
  tier: Tier,
  source: Schema.String,
  source_kind: SourceKind,
  source_series: Schema.NullOr(Schema.String),
  unit: Schema.String,
  cadence: Schema.String,
  description: Schema.NullOr(Schema.String),
  direction_kind: DirectionKind,
  indicator_kind: IndicatorKind,
  indicator_window: Schema.Int,
  indicator_lag: Schema.Int,
  /** Beyond the document: days from an observation's date to its publication. */
  publication_lag: Schema.Int,
  zscore_years: Schema.Int,
  include_in_composite: Schema.Boolean,
  reading: Schema.NullOr(Reading),
  series: Schema.Array(
    Schema.Struct({
      ts: CalendarDate,
      indicator: Schema.Finite,
      z: Schema.NullOr(Schema.Finite),
    }),
  ),
  obs_count: Schema.Int,
})
export type MetricDetail = typeof MetricDetail.Type

export const TierHistory = Schema.Struct({
  tier: Tier,
  name: Schema.String,
  tag: Schema.String,
  points: Schema.Array(Schema.Struct({ ts: CalendarDate, z: Schema.Finite })),
  latest_z: Schema.NullOr(Schema.Finite),
})
export type TierHistory = typeof TierHistory.Type

export const Sources = Schema.Struct({
  rows: Schema.Array(
    Schema.Struct({
      metric_id: Schema.String,
      name: Schema.String,
      tier: Tier,
      source: Schema.String,
      source_kind: SourceKind,
      cadence: Schema.String,
      status: Schema.Literals(["live", "stub"]),
      last_observation: Schema.NullOr(CalendarDate),
      last_ingested_at: Schema.NullOr(ZonelessTime),
      obs_count: Schema.Int,
      /** Beyond the document: why the last attempt failed; null after a success. */
      last_error: Schema.NullOr(Schema.String),
      /** Beyond the document: a note about the source, for people. */
      note: Schema.NullOr(Schema.String),
      demo: Schema.Boolean,
    }),
  ),
})
export type Sources = typeof Sources.Type

export const SchedulerStatus = Schema.Struct({
  jobs: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      label: Schema.String,
      description: Schema.String,
      schedule_repr: Schema.String,
      last_run_at: Schema.NullOr(ZonelessTime),
      last_success_at: Schema.NullOr(ZonelessTime),
      last_error_at: Schema.NullOr(ZonelessTime),
      last_error: Schema.NullOr(Schema.String),
      next_run_at: Schema.NullOr(ZonelessTime),
    }),
  ),
})
export type SchedulerStatus = typeof SchedulerStatus.Type

export const Watchlist = Schema.Struct({
  rows: Schema.Array(
    Schema.Struct({
      ticker: Schema.String,
      name: Schema.String,
      sub: Schema.String,
      price: Schema.NullOr(Schema.Finite),
      target: Schema.Finite,
      fwd_pe: Schema.String,
      status: Schema.String,
      /** A fraction: 0.05 is 5%. */
      return_30d: Schema.NullOr(Schema.Finite),
      return_30d_relative: Schema.NullOr(Schema.Finite),
      sparkline: Schema.Array(Schema.Finite),
      as_of: Schema.NullOr(CalendarDate),
      demo: Schema.Boolean,
    }),
  ),
  benchmark: Schema.String,
})
export type Watchlist = typeof Watchlist.Type

/** The health of the API. */
export const Health = Schema.Struct({ status: Schema.Literal("ok") })
