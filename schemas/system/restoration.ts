/**
 * Restores of the log from a backup: what was written after the backup is gone, and its positions
 * are given anew. Source: issue 10, deploy; docs/decisions/0143.
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

export const RecordRestoration = message("RecordRestoration", Restoration)
export const RestorationCommand = RecordRestoration
export type RestorationCommand = typeof RestorationCommand.Type

/** The log has a restore of this position or a later one already. */
export class RestorationOutOfOrder extends Schema.TaggedError<RestorationOutOfOrder>()(
  "RestorationOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
