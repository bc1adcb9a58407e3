/**
 * An operator knows of commits that cannot be read: nothing alerts about them any more.
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
