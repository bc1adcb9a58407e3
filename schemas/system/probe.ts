/** Probes of the path from a command to its commit. Source: DECISIONS, "health". */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** Commits something that changes nothing. */
export const ProbePath = message("ProbePath", {})
export const ProbeCommand = ProbePath
export type ProbeCommand = typeof ProbeCommand.Type

/** A probe refuses nothing. */
export const ProbeRejection = Schema.Never
