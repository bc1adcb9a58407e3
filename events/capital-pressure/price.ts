/** Events of a ticker's year. Stream: capital-pressure.price.<ticker>-<year>. */
import { Schema } from "effect"
import { Generated } from "#events/capital-pressure/generated.ts"
import { Price } from "#schemas/capital-pressure/price.ts"
import { message } from "#schemas/message.ts"

/** A day's close was published for the first time. */
export const PriceQuoted = message("PriceQuoted", { ...Price.fields, ...Generated })
/** A day's close was revised: each dividend changes the adjusted closes before it. */
export const PriceRequoted = message("PriceRequoted", {
  ...Price.fields,
  previous_close: Price.fields.close,
  previous_adjusted: Price.fields.adjusted,
  ...Generated,
})

export const PriceEvent = Schema.Union([PriceQuoted, PriceRequoted]).pipe(
  Schema.toTaggedUnion("type"),
)
export type PriceEvent = typeof PriceEvent.Type
