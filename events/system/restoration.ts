/**
 * That the log was restored from a backup, or that its loss of commits was accepted: whoever saw
 * more of it than there is now can tell by this what does not count any more.
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

/** What the stream's snapshot says. */
export const RestorationContext = Schema.Struct({
  /** In order, their positions rising. */
  restores: Schema.Array(Restored),
  /** Commits that are missing and were given up: merged, in order. */
  accepted: Schema.optionalKey(Schema.Array(MissingRange)),
})
