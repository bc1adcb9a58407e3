/**
 * That the log was restored from a backup: whoever saw more of it than the backup had can tell by
 * this what does not count any more.
 *
 * Stream: system.restoration.log.
 */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"
import { Position } from "#schemas/system/checkpoint.ts"
import { Restoration } from "#schemas/system/restoration.ts"

export const restoration_stream = "system.restoration.log"

export const StateRestored = message("StateRestored", Restoration)

export const RestorationEvent = StateRestored
export type RestorationEvent = Schema.Schema.Type<typeof RestorationEvent>

/** A restore, and the last position of its backup. */
const Restored = Schema.Struct({ restore_id: Token, position: Position })
export type Restored = typeof Restored.Type

/** What the stream's snapshot says: the restores so far, their positions rising. */
export const RestorationContext = Schema.Struct({ restores: Schema.Array(Restored) })
