/** Elections of the leader of a process. Source: DESIGN of the running system, 7. */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"

/** Makes `holder` the leader; sent by the new holder of the lease. */
export const ElectLeader = message("ElectLeader", { holder: Token })
export const ElectionCommand = ElectLeader
export type ElectionCommand = typeof ElectionCommand.Type

/** Elections reject no commands. */
export const ElectionRejection = Schema.Never
