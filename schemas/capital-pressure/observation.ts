/**
 * Observations: values of one metric in one year.
 *
 * Source: decisions of document 3, dashboard storage; DESIGN, "Metrics are an aggregate per
 * metric and year".
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

/** Maximum number of days in a year. */
const days_max = 366

export const Observation = Schema.Struct({ ts: CalendarDate, value: Schema.Finite })
export type Observation = typeof Observation.Type

/**
 * A publisher's values of a metric's year: new ones are observed, changed ones are revised, missing
 * ones stay. `demo`: the values are generated.
 */
export const ObserveMetric = message("ObserveMetric", {
  observations: Schema.Array(Observation).check(Schema.isMaxLength(days_max)),
  demo: Schema.Boolean,
})

export const ObservationCommand = Schema.Union([ObserveMetric])
export type ObservationCommand = typeof ObservationCommand.Type

/** The stream's id: `hy_spread-2026`. */
export const observationId = (metric_id: string, year: string) => `${metric_id}-${year}`

/** Splits a stream's id into the metric and the year (four digits). */
export const partsOf = (id: string) => {
  const [, metric_id = "", year = ""] = /^(.+)-(\d{4})$/.exec(id) ?? []
  return { metric_id, year }
}
