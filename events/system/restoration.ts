/**
 * The log was restored from a backup, or its loss of commits was accepted: readers that saw more of
 * it can find out what is no longer valid.
 *
 * Stream: system.restoration.log.
 */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"
import { AcceptedLoss, MissingRange, Restoration } from "#schemas/system/restoration.ts"

export const restoration_stream = "system.restoration.log"

export const StateRestored = message("StateRestored", Restoration)
export const LossAccepted = message("LossAccepted", AcceptedLoss)

export const RestorationEvent = Schema.Union([StateRestored, LossAccepted])
export type RestorationEvent = Schema.Schema.Type<typeof RestorationEvent>

/** A restore or an accepted loss, and the last position that the log had after it. */
const Restored = Schema.Struct({
  restore_id: Token,
  position: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
})
export type Restored = typeof Restored.Type

/** Content of the stream's snapshot. */
export const RestorationContext = Schema.Struct({
  /** In order of increasing positions. */
  restores: Schema.Array(Restored),
  /** Missing commits that were accepted as lost: merged, in order. */
  accepted: Schema.optionalKey(Schema.Array(MissingRange)),
})
