/**
 * The composite of each business day, as computed by `backfill-composite`.
 *
 * Source: document 3 §1 A, §2 A CompositeHistoryPoint.
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

/** Maximum number of business days in a year. */
const days_max = 262

/** Averages in tier order; null for a tier without data on that day. */
export const CompositeDay = Schema.Struct({
  ts: CalendarDate,
  z: Schema.Finite,
  tiers: Schema.Tuple([
    Schema.NullOr(Schema.Finite),
    Schema.NullOr(Schema.Finite),
    Schema.NullOr(Schema.Finite),
    Schema.NullOr(Schema.Finite),
  ]),
})
export type CompositeDay = typeof CompositeDay.Type

/**
 * The days of one year that have a composite, and the days that no longer have one. Unchanged days
 * have no effect. Values are rounded to six decimals.
 */
export const RecordComposite = message("RecordComposite", {
  days: Schema.Array(CompositeDay).check(Schema.isMaxLength(days_max)),
  withdrawn: Schema.optionalKey(Schema.Array(CalendarDate).check(Schema.isMaxLength(days_max))),
})

export const CompositeCommand = Schema.Union([RecordComposite])
export type CompositeCommand = typeof CompositeCommand.Type
