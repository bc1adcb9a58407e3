/**
 * Sealed stretches of the log.
 *
 * Stream: system.checkpoint.log. The stretches follow one another without a gap. `root` is the
 * chain over all commits from the first to `to`, so a changed or missing commit shows in it.
 */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { CheckpointRange } from "#schemas/system/checkpoint.ts"

export const CheckpointMade = message("CheckpointMade", CheckpointRange)

export const CheckpointEvent = CheckpointMade
export type CheckpointEvent = Schema.Schema.Type<typeof CheckpointEvent>
