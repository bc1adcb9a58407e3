/** The chart of a kind of aggregate, for drawing. */
import { Schema } from "effect"

const Kind = Schema.Literals(["atomic", "compound", "parallel", "final"])

export const ChartState = Schema.Struct({
  path: Schema.String.annotateKey({
    description: "Path of the state in the chart, such as `present.enrollment.pending`.",
  }),
  name: Schema.String.annotateKey({ description: "The last part of the path." }),
  parent: Schema.String.annotateKey({
    description: "Path of the parent state. Empty if that is the chart itself.",
  }),
  kind: Kind.annotateKey({
    description:
      "`atomic`: no children. `compound`: exclusive children. `parallel`: parallel children. " +
      "`final`: a final state.",
  }),
  is_initial: Schema.Boolean.annotateKey({
    description: "Whether it is the initial state of its parent.",
  }),
  description: Schema.NullOr(Schema.String).annotateKey({
    description: "Its meaning. Null if the name is sufficient.",
  }),
}).annotate({ identifier: "ChartState" })
export type ChartState = typeof ChartState.Type

export const ChartTransition = Schema.Struct({
  from: Schema.String.annotateKey({ description: "Path of a state. Empty: any state." }),
  to: Schema.NullOr(Schema.String).annotateKey({
    description: "Path of the next state. Null if the state does not change.",
  }),
  event: Schema.String.annotateKey({
    description: "Type of the event that causes the transition.",
  }),
  guard: Schema.String.annotateKey({
    description: "Name of the transition's condition. Empty if it has none.",
  }),
}).annotate({ identifier: "ChartTransition" })
export type ChartTransition = typeof ChartTransition.Type

export const Chart = Schema.Struct({
  id: Schema.String.annotateKey({ description: "The kind of aggregate: `<service>.<aggregate>`." }),
  description: Schema.NullOr(Schema.String).annotateKey({
    description: "Its meaning. Null if the name is sufficient.",
  }),
  kind: Kind.annotateKey({
    description: "Whether the top-level states are exclusive (`compound`) or parallel.",
  }),
  states: Schema.Array(ChartState).annotateKey({
    description: "All states, parents before their children.",
  }),
  transitions: Schema.Array(ChartTransition).annotateKey({
    description: "All transitions between them.",
  }),
}).annotate({ identifier: "Chart" })
export type Chart = typeof Chart.Type

/** Sorted by id. */
export const ChartList = Schema.Struct({
  charts: Schema.Array(Chart).annotate({ description: "The charts, ordered by id." }),
})
