/**
 * Restores of the log from a backup, and accepted losses: commits after a position are gone, and
 * later commits get their positions again. Source: docs/decisions/0143 and 0169.
 */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"
import { Position } from "#schemas/system/checkpoint.ts"

export const Restoration = {
  /** Of the restore: one backup may be restored twice. */
  restore_id: Token,
  /** The backup's id. */
  backup_id: Schema.String,
  /** When the backup was made, RFC 3339 in UTC. */
  made_at: Schema.String,
  /** The last position of the backup: those after it were of other commits before. */
  position: Position,
} as const

/** Positions, both ends included. */
export const MissingRange = Schema.Struct({ from: Position, to: Position })

/** Ranges that are listed; a log with more holes is restored from a backup. */
export const missing_ranges_max = 100

/** Why somebody gave commits up, in their words. */
const LossReason = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(500))

/**
 * Commits that were acknowledged and are gone, which somebody gave up. Source: DECISIONS
 * "published events" (repair).
 */
export const AcceptedLoss = {
  /** Names the repair as `restore_id` names a restore: ids of later events end in it. */
  restore_id: Token,
  /** The last position of the log when it was accepted; 0 for an empty log. */
  position: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  /** Those beyond `position` will be given again. */
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

/** The log has a restore of this position or a later one already. */
export class RestorationOutOfOrder extends Schema.TaggedError<RestorationOutOfOrder>()(
  "RestorationOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
