/** Events of the composite of a year. Stream: capital-pressure.composite.<year>. */
import { Schema } from "effect"
import { CompositeDay } from "#schemas/capital-pressure/composite.ts"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

/** The composite of these days was computed, or its result changed. Six decimals. */
export const CompositeComputed = message("CompositeComputed", {
  days: Schema.NonEmptyArray(CompositeDay),
})

/** These days had a composite, but have none according to the current data. */
export const CompositeWithdrawn = message("CompositeWithdrawn", {
  days: Schema.NonEmptyArray(CalendarDate),
})

export const CompositeEvent = Schema.Union([CompositeComputed, CompositeWithdrawn]).pipe(
  Schema.toTaggedUnion("type"),
)
export type CompositeEvent = typeof CompositeEvent.Type
