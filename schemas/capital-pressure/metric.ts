/**
 * Metrics: the data series of the dashboard and their rules.
 *
 * Source: document 3 §2 A; decisions of document 3, metric registry.
 */
import { Schema } from "effect"

export const Tier = Schema.Literals([1, 2, 3, 4])
export type Tier = typeof Tier.Type

export const Cadence = Schema.Literals(["daily", "weekly", "monthly", "quarterly"])
export type Cadence = typeof Cadence.Type

export const DirectionKind = Schema.Literals(["higher_bullish", "higher_bearish"])
export type DirectionKind = typeof DirectionKind.Type

export const IndicatorKind = Schema.Literals(["yoy", "level"])
export type IndicatorKind = typeof IndicatorKind.Type

export const SourceKind = Schema.Literals([
  "fred",
  "fred_derived",
  "ofr",
  "cftc",
  "cboe",
  "finra",
  "fiscaldata",
  "none",
] as const)
export type SourceKind = typeof SourceKind.Type

export const VoteDirection = Schema.Literals(["bull", "neutral", "bear"])
export type VoteDirection = typeof VoteDirection.Type

/** A level that decides the vote by itself. `text` is its wording in reasons: ">= 6.0 bear". */
export interface LevelRule {
  readonly when: "above" | "at_or_above" | "below"
  readonly level: number
  readonly vote: VoteDirection
  readonly text: string
}

/** How to format a value: see `formatting`. A spread is a percentage whose change is in bp. */
export type Format = "spread" | "percent" | "points" | "ratio" | "index" | "basis_points" | "growth"

export interface Metric {
  readonly metric_id: string
  readonly name: string
  readonly tier: Tier
  /** The publisher's display name. */
  readonly source: string
  readonly source_kind: SourceKind
  /** The publisher's name of the series; null for a stub. */
  readonly source_series: string | null
  readonly unit: string
  readonly cadence: Cadence
  /** The cadence with its day, for display: "weekly (Wed)". */
  readonly cadence_label: string
  readonly direction_kind: DirectionKind
  readonly indicator_kind: IndicatorKind
  /** Window of the z-score in days: 365 or 1096. */
  readonly indicator_window: number
  /** Days between the values that a yoy indicator compares: 365; 0 for a level. */
  readonly indicator_lag: number
  /** Days from an observation's date to its publication. */
  readonly publication_lag: number
  readonly zscore_years: number
  /** False for a gauge, which is displayed but not counted. */
  readonly include_in_composite: boolean
  readonly description: string
  readonly format: Format
  readonly rules: ReadonlyArray<LevelRule>
  readonly reasons: Readonly<Record<VoteDirection, string>>
  /** Why a stub has no feed; null for metrics with a feed. */
  readonly stub: string | null
}
