/** Events of a metric's year. Stream: capital-pressure.observation.<metric_id>-<year>. */
import { Schema } from "effect"
import { Generated } from "#events/capital-pressure/generated.ts"
import { Observation } from "#schemas/capital-pressure/observation.ts"
import { message } from "#schemas/message.ts"

/** A day's value was published for the first time. */
export const MetricObserved = message("MetricObserved", { ...Observation.fields, ...Generated })
/** The publisher revised a day's value; `previous` is the one before. */
export const MetricRevised = message("MetricRevised", {
  ...Observation.fields,
  previous: Schema.Finite,
  ...Generated,
})

export const ObservationEvent = Schema.Union([MetricObserved, MetricRevised]).pipe(
  Schema.toTaggedUnion("type"),
)
export type ObservationEvent = typeof ObservationEvent.Type
