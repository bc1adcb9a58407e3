/**
 * Checkpoints of the log: each ties the chains of all aggregates together over a stretch of it.
 *
 * Source: DESIGN of the running system, 1.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** A place in the log; the first is 1. */
export const Position = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** SHA-256 in hex. */
export const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** A stretch of the log, both ends included, and the root of everything up to its end. */
export const CheckpointRange = {
  from: Position,
  to: Position,
  commits: Position,
  root: Sha256,
} as const

export const MakeCheckpoint = message("MakeCheckpoint", CheckpointRange)
export const CheckpointCommand = MakeCheckpoint
export type CheckpointCommand = typeof CheckpointCommand.Type

/** The stretch does not begin where the last checkpoint ends. */
export class CheckpointOutOfOrder extends Schema.TaggedError<CheckpointOutOfOrder>()(
  "CheckpointOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
