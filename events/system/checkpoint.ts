/**
 * Sealed ranges of the log.
 *
 * Stream: system.checkpoint.log. The ranges follow one another without gaps. `root` is the hash
 * chain over all commits from the first to `to`, so a changed or missing commit changes it.
 */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { CheckpointRange } from "#schemas/system/checkpoint.ts"

export const CheckpointMade = message("CheckpointMade", CheckpointRange)

export const CheckpointEvent = CheckpointMade
export type CheckpointEvent = Schema.Schema.Type<typeof CheckpointEvent>
