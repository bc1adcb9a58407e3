/**
 * The dashboard API's responses. The page imports no server code; a test compares these types with
 * the server's schemas. Source: document 3 §2 A.
 */

export type Direction = "bull" | "neutral" | "bear"
export type TierNumber = 1 | 2 | 3 | 4
export type SourceKind =
  | "fred"
  | "fred_derived"
  | "ofr"
  | "cftc"
  | "cboe"
  | "finra"
  | "fiscaldata"
  | "none"

export interface Reading {
  readonly metric_id: string
  readonly name: string
  readonly tier: TierNumber
  readonly source: string
  readonly unit: string
  readonly value: string
  readonly delta: string
  readonly delta_class: Direction
  readonly z: number | null
  readonly z_label: string
  readonly z_class: Direction
  readonly as_of: string
  readonly sparkline: readonly number[]
  readonly vote: { readonly direction: Direction; readonly reason: string }
  readonly include_in_composite: boolean
  readonly description: string | null
  readonly stale: boolean
  readonly demo: boolean
}

export interface Tally {
  readonly bull: number
  readonly neutral: number
  readonly bear: number
}

export interface Composite {
  readonly z: number
  readonly z_label: string
  readonly sign_class: Direction
  readonly tally: Tally
  readonly metrics_total: number
}

export interface TierCard {
  readonly tier: TierNumber
  readonly name: string
  readonly tag: string
  readonly cadence: string
  readonly avg_z: number | null
  readonly metrics: readonly Reading[]
}

export interface CompositePoint {
  readonly ts: string
  readonly z: number
  readonly index_close: number | null
  readonly tier_zs: { readonly [tier in "1" | "2" | "3" | "4"]?: number }
}

export interface Dashboard {
  readonly composite: Composite | null
  readonly tiers: readonly TierCard[]
  readonly composite_history: readonly CompositePoint[]
  readonly demo: boolean
}

export interface MetricHistory {
  readonly metric_id: string
  readonly points: readonly { readonly ts: string; readonly value: number }[]
}

export interface MetricDetail {
  readonly metric_id: string
  readonly name: string
  readonly tier: TierNumber
  readonly source: string
  readonly source_kind: SourceKind
  readonly source_series: string | null
  readonly unit: string
  readonly cadence: string
  readonly description: string | null
  readonly direction_kind: "higher_bullish" | "higher_bearish"
  readonly indicator_kind: "yoy" | "level"
  readonly indicator_window: number
  readonly indicator_lag: number
  readonly publication_lag: number
  readonly zscore_years: number
  readonly include_in_composite: boolean
  readonly reading: Reading | null
  readonly series: readonly {
    readonly ts: string
    readonly indicator: number
    readonly z: number | null
  }[]
  readonly obs_count: number
}

export interface Sources {
  readonly rows: readonly {
    readonly metric_id: string
    readonly name: string
    readonly tier: TierNumber
    readonly source: string
    readonly source_kind: SourceKind
    readonly cadence: string
    readonly status: "live" | "stub"
    readonly last_observation: string | null
    readonly last_ingested_at: string | null
    readonly obs_count: number
    readonly last_error: string | null
    readonly note: string | null
    readonly demo: boolean
  }[]
}
export type SourceRow = Sources["rows"][number]

export interface SchedulerStatus {
  readonly jobs: readonly {
    readonly id: string
    readonly label: string
    readonly description: string
    readonly schedule_repr: string
    readonly last_run_at: string | null
    readonly last_success_at: string | null
    readonly last_error_at: string | null
    readonly last_error: string | null
    readonly next_run_at: string | null
  }[]
}

export interface Watchlist {
  readonly rows: readonly {
    readonly ticker: string
    readonly name: string
    readonly sub: string
    readonly price: number | null
    readonly target: number
    readonly fwd_pe: string
    readonly status: string
    readonly return_30d: number | null
    readonly return_30d_relative: number | null
    readonly sparkline: readonly number[]
    readonly as_of: string | null
    readonly demo: boolean
  }[]
  readonly benchmark: string
}
