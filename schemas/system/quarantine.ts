/**
 * Acknowledgements of unreadable commits: an operator knows about them, so they are no longer
 * reported. Source: docs/decisions/0189.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Position } from "#schemas/system/checkpoint.ts"

export const Acknowledgement = {
  /** All unreadable commits up to this position are acknowledged. */
  through: Position,
  /** Number of newly acknowledged commits: at least 1. */
  commits: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  /** The operator's reason to keep them: 1 to 500 characters. */
  reason: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(500)),
} as const

export const AcknowledgeUnreadable = message("AcknowledgeUnreadable", Acknowledgement)
export const QuarantineCommand = Schema.Union([AcknowledgeUnreadable])
export type QuarantineCommand = typeof QuarantineCommand.Type

/** Commits up to this position or a later one were already acknowledged. */
export class AcknowledgementOutOfOrder extends Schema.TaggedError<AcknowledgementOutOfOrder>()(
  "AcknowledgementOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
