/**
 * Generations of the log: a stream that begins with the last state of everything, so that the one
 * before can be put away.
 *
 * Source: DESIGN of the running system, 9.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Position, SealedTree, Sha256 } from "#schemas/system/checkpoint.ts"

/** What the log held when the generation began. */
export const GenerationRange = {
  /** 2 for the second; nobody begins the first. */
  generation: Schema.Int.check(Schema.isGreaterThanOrEqualTo(2)),
  /** The last position of the generation before. */
  base: Position,
  /** Aggregates, each with its last commit, that it begins with. */
  aggregates: Position,
  /** The chain over all commits up to `base`, as checkpoints have it, and the tree over them. */
  root: Sha256,
  tree: SealedTree,
  /** The file that holds the generation before: its bytes and their SHA-256. */
  archive: Schema.Struct({ bytes: Position, sha256: Sha256 }),
} as const

export const StartGeneration = message("StartGeneration", GenerationRange)
export const GenerationCommand = StartGeneration
export type GenerationCommand = typeof GenerationCommand.Type

/** The generation does not follow the one that is there. */
export class GenerationOutOfOrder extends Schema.TaggedError<GenerationOutOfOrder>()(
  "GenerationOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
