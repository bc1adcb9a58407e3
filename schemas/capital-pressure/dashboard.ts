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

/** A keyword that determines the colour on pages. */
export const SignClass = VoteDirection

/** Texts of fields that several responses have. */
const about = {
  metric_id: Schema.String.annotateKey({ description: "ID of the metric in the registry." }),
  name: Schema.String.annotateKey({ description: "Name of the metric, for display." }),
  tier: Tier.annotateKey({ description: "Tier of the metric, 1 to 4." }),
  source: Schema.String.annotateKey({ description: "Name of the publisher, for display." }),
  source_kind: SourceKind.annotateKey({
    description: "Keyword of the publisher. `none` for a stub.",
  }),
  unit: Schema.String.annotateKey({ description: "Unit of the value, for display." }),
  cadence: Schema.String.annotateKey({
    description: "How often the metric is published, for display, such as `weekly (Wed)`.",
  }),
  description: Schema.NullOr(Schema.String).annotateKey({
    description: "Description of the metric, for display.",
  }),
  include_in_composite: Schema.Boolean.annotateKey({
    description: "Whether the metric votes and counts in averages. False for gauges.",
  }),
  obs_count: Schema.Int.annotateKey({ description: "Number of stored observations." }),
  demo: Schema.Boolean.annotateKey({ description: "Whether the data is generated, not real." }),
}
const named_tier = {
  tier: Tier.annotateKey({ description: "Number of the tier, 1 to 4." }),
  name: Schema.String.annotateKey({ description: "Name of the tier, for display." }),
  tag: Schema.String.annotateKey({ description: "Short label of the tier, for display." }),
}
const ts = CalendarDate.annotateKey({ description: "Date, YYYY-MM-DD." })

export const Vote = Schema.Struct({
  direction: VoteDirection.annotateKey({
    description: "`bear` if the metric shows pressure, `bull` if it shows the opposite.",
  }),
  reason: Schema.String.annotateKey({ description: "One sentence about the vote." }),
}).annotate({ identifier: "Vote", description: "A metric's vote." })

export const Reading = Schema.Struct({
  metric_id: about.metric_id,
  name: about.name,
  tier: about.tier,
  source: about.source,
  unit: about.unit,
  value: Schema.String.annotateKey({
    description: "Latest value, formatted with its unit.",
  }),
  delta: Schema.String.annotateKey({
    description: "Change since the previous observation, formatted. `unch` if it rounds to zero.",
  }),
  delta_class: SignClass.annotateKey({
    description: "`bear` if the change adds pressure, `bull` if it reduces it.",
  }),
  z: Schema.NullOr(Schema.Finite).annotateKey({
    description: "Plain rolling z-score. Null until its window is full.",
  }),
  z_label: Schema.String.annotateKey({
    description: "The z-score in words.",
  }),
  z_class: SignClass.annotateKey({
    description: "Sign of the directional z-score: `bear` is pressure.",
  }),
  as_of: CalendarDate.annotateKey({
    description: "Date of the value: the last day of its period. It may be older than today.",
  }),
  sparkline: Schema.Array(Schema.Finite).annotateKey({
    description:
      "Latest values, oldest first: 60 daily, 52 weekly, 36 monthly or 20 quarterly ones.",
  }),
  vote: Vote,
  include_in_composite: about.include_in_composite,
  description: about.description,
  stale: Schema.Boolean.annotateKey({
    description: "Whether the value is older than its cadence allows. Stale values are ignored.",
  }),
  demo: about.demo,
}).annotate({
  identifier: "Reading",
  description: "The latest value of a metric, with its z-score and vote.",
})
export type Reading = typeof Reading.Type

export const Tally = Schema.Struct({
  bull: Schema.Int.annotateKey({ description: "Number of bull votes." }),
  neutral: Schema.Int.annotateKey({ description: "Number of neutral votes." }),
  bear: Schema.Int.annotateKey({ description: "Number of bear votes." }),
}).annotate({
  identifier: "Tally",
  description: "The votes of all metrics that count and are not stale.",
})

export const Composite = Schema.Struct({
  z: Schema.Finite.annotateKey({
    description: "Mean of the tier averages that exist. Positive is pressure.",
  }),
  z_label: Schema.String.annotateKey({
    description: "The composite in words.",
  }),
  sign_class: SignClass.annotateKey({
    description: "`bear` is pressure.",
  }),
  tally: Tally,
  metrics_total: Schema.Int.annotateKey({
    description: "Number of metrics in the tally.",
  }),
}).annotate({
  identifier: "Composite",
  description: "The capital pressure over all tiers.",
})
export type Composite = typeof Composite.Type

export const TierCard = Schema.Struct({
  tier: named_tier.tier,
  name: named_tier.name,
  tag: named_tier.tag,
  cadence: Schema.String.annotateKey({
    description: "How often the tier's metrics are published, for display.",
  }),
  avg_z: Schema.NullOr(Schema.Finite).annotateKey({
    description: "Mean of the directional z-scores, without gauges. Null without data.",
  }),
  metrics: Schema.Array(Reading).annotateKey({
    description: "Readings of the tier's metrics, gauges included. Empty without data.",
  }),
}).annotate({
  identifier: "TierCard",
  description: "A tier with the latest readings of its metrics.",
})
export type TierCard = typeof TierCard.Type

export const CompositePoint = Schema.Struct({
  ts,
  z: Schema.Finite.annotateKey({ description: "Composite of that day. Positive is pressure." }),
  index_close: Schema.NullOr(Schema.Finite).annotateKey({
    description: "Close of the S&P 500 on that day. Null if unknown.",
  }),
  tier_zs: Schema.Record(
    Schema.Literals(["1", "2", "3", "4"]),
    Schema.optionalKey(
      Schema.Finite.annotate({ description: "Average directional z-score of the tier." }),
    ),
  ).annotateKey({
    description: "Average of each tier, `1` to `4`. A tier without data on that day is absent.",
  }),
}).annotate({ identifier: "CompositePoint", description: "The composite of one business day." })
export type CompositePoint = typeof CompositePoint.Type

export const Dashboard = Schema.Struct({
  composite: Schema.NullOr(Composite).annotateKey({
    description: "The current composite. Null while no metric has data.",
  }),
  tiers: Schema.Array(TierCard).annotateKey({
    description: "The four tiers, in order.",
  }),
  composite_history: Schema.Array(CompositePoint).annotateKey({
    description: "Up to 252 business days, oldest first. Empty until `backfill-composite` has run.",
  }),
  demo: Schema.Boolean.annotateKey({
    description: "Whether any of the data is generated, not real.",
  }),
}).annotate({
  identifier: "Dashboard",
  description: "Everything that the dashboard page shows.",
})
export type Dashboard = typeof Dashboard.Type

export const MetricHistory = Schema.Struct({
  metric_id: about.metric_id,
  points: Schema.Array(
    Schema.Struct({
      ts,
      value: Schema.Finite.annotateKey({ description: "The stored value." }),
    }),
  ).annotateKey({ description: "The stored values, oldest first." }),
}).annotate({ identifier: "MetricHistory", description: "The stored values of a metric." })
export type MetricHistory = typeof MetricHistory.Type

export const MetricDetail = Schema.Struct({
  metric_id: about.metric_id,
  name: about.name,
  tier: about.tier,
  source: about.source,
  source_kind: about.source_kind,
  source_series: Schema.NullOr(Schema.String).annotateKey({
    description: "The publisher's name of the series. Null for a stub.",
  }),
  unit: about.unit,
  cadence: about.cadence,
  description: about.description,
  direction_kind: DirectionKind.annotateKey({
    description:
      "Whether a higher value is bullish or bearish: the sign of the directional z-score.",
  }),
  indicator_kind: IndicatorKind.annotateKey({
    description: "`level`: the value itself. `yoy`: its growth over a year.",
  }),
  indicator_window: Schema.Int.annotateKey({ description: "Window of the z-score, in days." }),
  indicator_lag: Schema.Int.annotateKey({
    description: "Days between the values that a `yoy` indicator compares. 0 for a level.",
  }),
  publication_lag: Schema.Int.annotateKey({
    description: "Days from an observation's date to its publication, when it starts to count.",
  }),
  zscore_years: Schema.Int.annotateKey({
    description: "Window of the z-score in years: 3, or 1 for `hy_spread`.",
  }),
  include_in_composite: about.include_in_composite,
  reading: Schema.NullOr(Reading).annotateKey({
    description: "The latest reading. Null for a stub and without data.",
  }),
  series: Schema.Array(
    Schema.Struct({
      ts,
      indicator: Schema.Finite.annotateKey({ description: "Value of the indicator." }),
      z: Schema.NullOr(Schema.Finite).annotateKey({
        description: "Plain rolling z-score. Null until its window is full.",
      }),
    }),
  ).annotateKey({ description: "Indicator and z-score, oldest first. Empty for a stub." }),
  obs_count: about.obs_count,
}).annotate({
  identifier: "MetricDetail",
  description: "A metric's definition, its latest reading and its series.",
})
export type MetricDetail = typeof MetricDetail.Type

export const TierHistory = Schema.Struct({
  ...named_tier,
  points: Schema.Array(
    Schema.Struct({
      ts,
      z: Schema.Finite.annotateKey({ description: "Average of the directional z-scores." }),
    }),
  ).annotateKey({ description: "One point for each business day with data, oldest first." }),
  latest_z: Schema.NullOr(Schema.Finite).annotateKey({
    description: "The last point's average. Null until `backfill-composite` has run.",
  }),
}).annotate({ identifier: "TierHistory", description: "The average of a tier over time." })
export type TierHistory = typeof TierHistory.Type

const SourceRow = Schema.Struct({
  metric_id: about.metric_id,
  name: about.name,
  tier: about.tier,
  source: about.source,
  source_kind: about.source_kind,
  cadence: about.cadence,
  status: Schema.Literals(["live", "stub"]).annotateKey({
    description: "`live` if the metric is ingested, `stub` if it is only registered.",
  }),
  last_observation: Schema.NullOr(CalendarDate).annotateKey({
    description: "Date of the newest observation. Null without one.",
  }),
  last_ingested_at: Schema.NullOr(ZonelessTime).annotateKey({
    description: "Time of the last successful ingest, in UTC. Null without one.",
  }),
  obs_count: about.obs_count,
  last_error: Schema.NullOr(Schema.String).annotateKey({
    description: "Why the last ingest failed. Null after a success.",
  }),
  note: Schema.NullOr(Schema.String).annotateKey({
    description: "A note about the source, for display. Null without one.",
  }),
  demo: about.demo,
}).annotate({ identifier: "MetricSource" })

export const Sources = Schema.Struct({
  rows: Schema.Array(SourceRow).annotateKey({
    description: "One row for each registered metric, stubs included.",
  }),
}).annotate({ identifier: "MetricSources", description: "The sources of all metrics." })
export type Sources = typeof Sources.Type

const JobRow = Schema.Struct({
  id: Schema.String.annotateKey({ description: "ID of the job." }),
  label: Schema.String.annotateKey({ description: "Name of the job, for display." }),
  description: Schema.String.annotateKey({ description: "Description of the job, for display." }),
  schedule_repr: Schema.String.annotateKey({ description: "The schedule in words." }),
  last_run_at: Schema.NullOr(ZonelessTime).annotateKey({
    description: "Start of the last run, in UTC. Null before the first one.",
  }),
  last_success_at: Schema.NullOr(ZonelessTime).annotateKey({
    description: "End of the last successful run, in UTC. Null without one.",
  }),
  last_error_at: Schema.NullOr(ZonelessTime).annotateKey({
    description: "End of the last failed run, in UTC. Null without one.",
  }),
  last_error: Schema.NullOr(Schema.String).annotateKey({
    description: "Why the last failed run failed. Null without one.",
  }),
  next_run_at: Schema.NullOr(ZonelessTime).annotateKey({
    description: "Start of the next run, in UTC. Null while the scheduler is off.",
  }),
}).annotate({ identifier: "ScheduledJob" })

export const SchedulerStatus = Schema.Struct({
  jobs: Schema.Array(JobRow).annotateKey({
    description: "All scheduled jobs. They are also listed while the scheduler is off.",
  }),
}).annotate({ identifier: "SchedulerStatus", description: "The jobs of the ingest scheduler." })
export type SchedulerStatus = typeof SchedulerStatus.Type

const return_days = "over the last 30 days, as a fraction: 0.05 is 5%."

const WatchlistRow = Schema.Struct({
  ticker: Schema.String.annotateKey({ description: "Ticker symbol." }),
  name: Schema.String.annotateKey({ description: "Name of the company." }),
  sub: Schema.String.annotateKey({ description: "Its subsector of healthcare." }),
  price: Schema.NullOr(Schema.Finite).annotateKey({
    description: "Last close in USD. Null without a price.",
  }),
  target: Schema.Finite.annotateKey({
    description: "The operator's target price in USD. 0 if none is set.",
  }),
  fwd_pe: Schema.String.annotateKey({
    description: "The operator's forward P/E ratio, such as `18.5x`. `n/a` if none is set.",
  }),
  status: Schema.String.annotateKey({
    description:
      "`below target`, `near target` or `above target`; `no price` or `no target` if one is " +
      "missing.",
  }),
  return_30d: Schema.NullOr(Schema.Finite).annotateKey({
    description: `Return ${return_days} Null without enough prices.`,
  }),
  return_30d_relative: Schema.NullOr(Schema.Finite).annotateKey({
    description: `Return less that of the benchmark ${return_days} Null without enough prices.`,
  }),
  sparkline: Schema.Array(Schema.Finite).annotateKey({
    description: "Up to 30 latest closes in USD, oldest first.",
  }),
  as_of: Schema.NullOr(CalendarDate).annotateKey({
    description: "Date of the last close. Null without a price.",
  }),
  demo: about.demo,
}).annotate({ identifier: "WatchlistRow" })

export const Watchlist = Schema.Struct({
  rows: Schema.Array(WatchlistRow).annotateKey({
    description: "One row for each of the eight tickers, in a fixed order.",
  }),
  benchmark: Schema.String.annotateKey({
    description: "Ticker of the benchmark: the healthcare sector fund.",
  }),
}).annotate({
  identifier: "Watchlist",
  description: "Prices and returns of eight healthcare stocks.",
})
export type Watchlist = typeof Watchlist.Type

/** The health of the API. */
export const Health = Schema.Struct({
  status: Schema.Literal("ok").annotateKey({ description: "Always `ok`." }),
}).annotate({ identifier: "DashboardHealth", description: "The service responds." })
