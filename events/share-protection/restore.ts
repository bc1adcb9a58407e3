/** Events of a restore. Stream: share-protection.restore.<id>. */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { restore_fields, restored_fields } from "#schemas/share-protection/restore.ts"
import { Reason } from "#schemas/share-protection/text.ts"

export const RestoreRequested = message("RestoreRequested", restore_fields)
export const RestoreQueued = message("RestoreQueued", {})
export const RestoreStarted = message("RestoreStarted", {})
export const RestoreCompleted = message("RestoreCompleted", restored_fields)
export const RestoreFailed = message("RestoreFailed", { reason: Reason })
/** A new attempt: it waits for a worker again. */
export const RestoreRetried = message("RestoreRetried", {})

export const RestoreEvent = Schema.Union([
  RestoreRequested,
  RestoreQueued,
  RestoreStarted,
  RestoreCompleted,
  RestoreFailed,
  RestoreRetried,
]).pipe(Schema.toTaggedUnion("type"))
export type RestoreEvent = typeof RestoreEvent.Type
