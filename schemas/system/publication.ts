/**
 * Anchors of the numbering of published events: which event of the log has which number.
 *
 * The numbers themselves are nowhere in the log. From an anchor on they can be counted again, for
 * events that the published stream does not hold any more. Source: decision 0172.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Anchor = {
  /** The published event's number; 0: none was published yet. */
  sequence: Count,
  /** All after it come after this place: a commit, and an event of it, from 0. */
  position: Count,
  index: Count,
  /** `<service>.<type>` of all that is published from here on: another release has more types. */
  types: Schema.Array(Schema.String),
} as const

export const AnchorPublication = message("AnchorPublication", Anchor)
export const PublicationCommand = AnchorPublication
export type PublicationCommand = typeof PublicationCommand.Type

/** The log has an anchor of this position or a later one already. */
export class AnchorOutOfOrder extends Schema.TaggedError<AnchorOutOfOrder>()("AnchorOutOfOrder", {
  code: Schema.tag("svc.conflict"),
  detail: Schema.String,
}) {}
