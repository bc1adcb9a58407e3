/** Probes of the command path. Source: DECISIONS, "health". */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"

/** Commits an event that changes nothing. */
export const ProbePath = message("ProbePath", {})
export const ProbeCommand = ProbePath
export type ProbeCommand = typeof ProbeCommand.Type

/** Probes reject no commands. */
export const ProbeRejection = Schema.Never
