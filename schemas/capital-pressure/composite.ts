/**
 * The composite of each business day, as `backfill-composite` computed it.
 *
 * Source: document 3 §1 A, §2 A CompositeHistoryPoint.
 */
import { Schema } from "effect"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { message } from "#schemas/message.ts"

/** Business days of a year, at most. */
const days_max = 262

/** Tier averages in the order of the tiers; null of one without data that day. */
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
 * The days of one year that have a composite, and others that have none any more; what is as it
 * was changes nothing. Six decimals are kept.
 */
export const RecordComposite = message("RecordComposite", {
  days: Schema.Array(CompositeDay).check(Schema.isMaxLength(days_max)),
  withdrawn: Schema.optionalKey(Schema.Array(CalendarDate).check(Schema.isMaxLength(days_max))),
})

export const CompositeCommand = Schema.Union([RecordComposite])
export type CompositeCommand = typeof CompositeCommand.Type
