/**
 * That the path to the log was probed: the commit itself is the proof.
 *
 * Stream: system.probe.path. A process commits one when it is asked whether it is ready, and knows
 * of no other commit for minutes, or when its last command failed.
 */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"

export const PathProbed = message("PathProbed", {})

export const ProbeEvent = PathProbed
export type ProbeEvent = Schema.Schema.Type<typeof ProbeEvent>
