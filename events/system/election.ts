/**
 * Elections.
 *
 * Stream: system.election.<process>. The commit's position is the fencing number: commands sent in
 * the process's name carry it, and an aggregate that has seen a later one rejects it.
 */
import type { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"

export const LeaderElected = message("LeaderElected", { holder: Token })

export const ElectionEvent = LeaderElected
export type ElectionEvent = Schema.Schema.Type<typeof ElectionEvent>
