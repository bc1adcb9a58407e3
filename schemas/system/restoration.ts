/**
 * Restores of the log from a backup, and accepted losses: commits after a position are gone, and
 * later commits reuse their positions. Source: docs/decisions/0143 and 0169.
 */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"
import { Position } from "#schemas/system/checkpoint.ts"

export const Restoration = {
  /** The id of this restore: a backup may be restored several times. */
  restore_id: Token,
  /** The backup's id. */
  backup_id: Schema.String,
  /** When the backup was made, RFC 3339 in UTC. */
  made_at: Schema.String,
  /** The last position of the backup: later positions belonged to other commits before. */
  position: Position,
} as const

/** Positions, inclusive. */
export const MissingRange = Schema.Struct({ from: Position, to: Position })

/** Maximum number of listed ranges; a log with more gaps must be restored from a backup. */
export const missing_ranges_max = 100

/** Why an operator accepted the loss, in their words. */
const LossReason = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(500))

/**
 * Acknowledged commits that are missing, and whose loss an operator accepted. Source: DECISIONS
 * "published events" (repair).
 */
export const AcceptedLoss = {
  /** Identifies the repair like `restore_id` of a restore: ids of later events end with it. */
  restore_id: Token,
  /** The last position of the log at acceptance; 0 for an empty log. */
  position: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** Ranges beyond `position` will be reused. */
  missing: Schema.Array(MissingRange).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(missing_ranges_max),
  ),
  reason: LossReason,
} as const

export const RecordRestoration = message("RecordRestoration", Restoration)
export const AcceptLoss = message("AcceptLoss", AcceptedLoss)
export const RestorationCommand = Schema.Union([RecordRestoration, AcceptLoss])
export type RestorationCommand = typeof RestorationCommand.Type

/** The log already has a restore at this position or a later one. */
export class RestorationOutOfOrder extends Schema.TaggedError<RestorationOutOfOrder>()(
  "RestorationOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
