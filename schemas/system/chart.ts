/** The chart of a kind of aggregate, for whoever draws it. */
import { Schema } from "effect"

const Kind = Schema.Literals(["atomic", "compound", "parallel", "final"])

export const ChartState = Schema.Struct({
  /** `present.enrollment.pending` */
  path: Schema.String,
  name: Schema.String,
  /** Path of the state that it is in; empty where that is the chart. */
  parent: Schema.String,
  kind: Kind,
  /** Whether what it is in begins here. */
  is_initial: Schema.Boolean,
  /** What it means, in a sentence or two; null where its name says it. */
  told: Schema.NullOr(Schema.String),
})
export type ChartState = typeof ChartState.Type

export const ChartWay = Schema.Struct({
  /** The path of a state; empty: from anywhere. */
  from: Schema.String,
  /** Null where the state stays. */
  to: Schema.NullOr(Schema.String),
  /** The type of the event that leads there. */
  event: Schema.String,
  /** What must be so, by its name; empty where nothing must. */
  guard: Schema.String,
})
export type ChartWay = typeof ChartWay.Type

export const Chart = Schema.Struct({
  /** `<service>.<aggregate>` */
  id: Schema.String,
  told: Schema.NullOr(Schema.String),
  kind: Kind,
  /** Each before those within it. */
  states: Schema.Array(ChartState),
  ways: Schema.Array(ChartWay),
})
export type Chart = typeof Chart.Type

/** By their ids' order. */
export const ChartList = Schema.Struct({ charts: Schema.Array(Chart) })
