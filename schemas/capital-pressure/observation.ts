/**
 * Observations: values of one metric in one year.
 *
 * Source: decisions of document 3, dashboard storage; DESIGN, "Metrics are an aggregate per
 * metric and year".
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

/** A year has no more days. */
const days_max = 366

export const Observation = Schema.Struct({ ts: CalendarDate, value: Schema.Finite })
export type Observation = typeof Observation.Type

/**
 * What a publisher tells of a metric's year: what is new is observed, what differs is revised,
 * what is missing stays. `demo`: it was generated.
 */
export const ObserveMetric = message("ObserveMetric", {
  observations: Schema.Array(Observation).check(Schema.isMaxLength(days_max)),
  demo: Schema.Boolean,
})

export const ObservationCommand = Schema.Union([ObserveMetric])
export type ObservationCommand = typeof ObservationCommand.Type

/** The id of the stream: `hy_spread-2026`. */
export const observationId = (metric_id: string, year: string) => `${metric_id}-${year}`

/** The year of a stream's id, four digits; the rest is the metric's. */
export const partsOf = (id: string) => {
  const [, metric_id = "", year = ""] = /^(.+)-(\d{4})$/.exec(id) ?? []
  return { metric_id, year }
}
