/**
 * The beginning of a generation of the log, and what came before it.
 *
 * Stream: system.generation.log. It is the first commit of its generation that is not a copy, and
 * names the root over everything before it: the chain continues from one stream to the next.
 */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { GenerationRange } from "#schemas/system/generation.ts"

export const GenerationStarted = message("GenerationStarted", GenerationRange)

export const GenerationEvent = GenerationStarted
export type GenerationEvent = Schema.Schema.Type<typeof GenerationEvent>
