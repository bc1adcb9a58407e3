/**
 * An operator acknowledged unreadable commits: they raise no further alerts.
 *
 * Stream: system.quarantine.log.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Acknowledgement } from "#schemas/system/quarantine.ts"

export const quarantine_stream = "system.quarantine.log"

export const UnreadableAcknowledged = message("UnreadableAcknowledged", Acknowledgement)

export const QuarantineEvent = Schema.Union([UnreadableAcknowledged])
export type QuarantineEvent = Schema.Schema.Type<typeof QuarantineEvent>
