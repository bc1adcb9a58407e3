/**
 * Checkpoints of the log: each seals a range of it across all aggregates.
 *
 * Source: DESIGN of the running system, 1.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** A position in the log; the first is 1. */
export const Position = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** SHA-256 in hex. */
export const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))

/** Maximum number of peaks of a tree: one for each bit of a safe integer. */
const peaks_max = 53

/**
 * The Merkle tree over all commits from the first on: its size, and the roots of its perfect
 * subtrees, largest first.
 */
export const SealedTree = Schema.Struct({
  size: Position,
  peaks: Schema.Array(Sha256).check(Schema.isMaxLength(peaks_max)),
})
export type SealedTree = typeof SealedTree.Type

/** A range of the log, inclusive, and the root of the log up to its end. */
export const CheckpointRange = {
  from: Position,
  to: Position,
  commits: Position,
  root: Sha256,
  /** Absent in checkpoints from releases without trees. */
  tree: Schema.optionalKey(SealedTree),
} as const

export const MakeCheckpoint = message("MakeCheckpoint", CheckpointRange)
export const CheckpointCommand = MakeCheckpoint
export type CheckpointCommand = typeof CheckpointCommand.Type

/** The range does not follow the last checkpoint. */
export class CheckpointOutOfOrder extends Schema.TaggedError<CheckpointOutOfOrder>()(
  "CheckpointOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
