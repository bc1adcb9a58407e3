/**
 * Probes of the path to the log: the commit itself is the proof.
 *
 * Stream: system.probe.path. A process commits one for a readiness check if it has seen no other
 * commit for minutes, or if its last command failed.
 */
import type { Schema } from "effect"
import { message } from "#schemas/message.ts"

export const PathProbed = message("PathProbed", {})

export const ProbeEvent = PathProbed
export type ProbeEvent = Schema.Schema.Type<typeof ProbeEvent>
