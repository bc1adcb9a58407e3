/**
 * Anchors of the numbering of published events: each ties a number to a position in the log.
 *
 * The log does not store the numbers themselves. They are counted again from an anchor for events
 * that the published stream no longer holds. Source: decision 0172.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Anchor = {
  /** The published event's number; 0 before the first. */
  sequence: Count,
  /** The next number belongs to an event after this commit and event index (from 0). */
  position: Count,
  index: Count,
  /**
   * `<service>.<type>` of all types published after this anchor; other releases have other types.
   */
  types: Schema.Array(Schema.String),
} as const

export const AnchorPublication = message("AnchorPublication", Anchor)
export const PublicationCommand = AnchorPublication
export type PublicationCommand = typeof PublicationCommand.Type

/** The log already has an anchor at this position or a later one. */
export class AnchorOutOfOrder extends Schema.TaggedError<AnchorOutOfOrder>()("AnchorOutOfOrder", {
  code: Schema.tag("svc.conflict"),
  detail: Schema.String,
}) {}
