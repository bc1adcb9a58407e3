/** What can happen to the composite of a year. Stream: capital-pressure.composite.<year>. */
import { Schema } from "effect"
import { CompositeDay } from "#schemas/capital-pressure/composite.ts"
import { message } from "#schemas/message.ts"

/** The composite of these days was computed, or comes out otherwise than before. Six decimals. */
export const CompositeComputed = message("CompositeComputed", {
  days: Schema.NonEmptyArray(CompositeDay),
})

export const CompositeEvent = Schema.Union([CompositeComputed]).pipe(Schema.toTaggedUnion("type"))
export type CompositeEvent = typeof CompositeEvent.Type
