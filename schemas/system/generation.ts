/**
 * Generations of the log: each starts a new stream with the last state of every aggregate, so that
 * the previous stream can be archived.
 *
 * Source: DESIGN of the running system, 9.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Position, SealedTree, Sha256 } from "#schemas/system/checkpoint.ts"

/** The content of the log when the generation began. */
export const GenerationRange = {
  /** 2 for the second; the first needs no command. */
  generation: Schema.Int.check(Schema.isGreaterThanOrEqualTo(2)),
  /** The last position of the previous generation. */
  base: Position,
  /** Number of aggregates whose last commits were copied into it. */
  aggregates: Position,
  /**
   * The root of the hash chain over all commits up to `base`, as in checkpoints, and their tree.
   */
  root: Sha256,
  tree: SealedTree,
  /** Size and SHA-256 of the file with the previous generation. */
  archive: Schema.Struct({ bytes: Position, sha256: Sha256 }),
} as const

export const StartGeneration = message("StartGeneration", GenerationRange)
export const GenerationCommand = StartGeneration
export type GenerationCommand = typeof GenerationCommand.Type

/** The generation does not follow the current one. */
export class GenerationOutOfOrder extends Schema.TaggedError<GenerationOutOfOrder>()(
  "GenerationOutOfOrder",
  { code: Schema.tag("svc.conflict"), detail: Schema.String },
) {}
