/** The chart of a kind of aggregate, for drawing. */
import { Schema } from "effect"

const Kind = Schema.Literals(["atomic", "compound", "parallel", "final"])

export const ChartState = Schema.Struct({
  /** `present.enrollment.pending` */
  path: Schema.String,
  name: Schema.String,
  /** Path of the parent state; empty if that is the chart itself. */
  parent: Schema.String,
  kind: Kind,
  /** Whether it is the initial state of its parent. */
  is_initial: Schema.Boolean,
  /** Its meaning in a sentence or two; null if its name is sufficient. */
  description: Schema.NullOr(Schema.String),
})
export type ChartState = typeof ChartState.Type

export const ChartTransition = Schema.Struct({
  /** The path of a state; empty: any state. */
  from: Schema.String,
  /** Null if the state does not change. */
  to: Schema.NullOr(Schema.String),
  /** The type of the event that causes the transition. */
  event: Schema.String,
  /** The name of its condition; empty if it has none. */
  guard: Schema.String,
})
export type ChartTransition = typeof ChartTransition.Type

export const Chart = Schema.Struct({
  /** `<service>.<aggregate>` */
  id: Schema.String,
  description: Schema.NullOr(Schema.String),
  kind: Kind,
  /** Parents before their children. */
  states: Schema.Array(ChartState),
  transitions: Schema.Array(ChartTransition),
})
export type Chart = typeof Chart.Type

/** Sorted by id. */
export const ChartList = Schema.Struct({ charts: Schema.Array(Chart) })
