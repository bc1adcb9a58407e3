/** Elections: which process runs what only one may run. Source: DESIGN of the running system, 7. */
import { Schema } from "effect"
import { message, Token } from "#schemas/message.ts"

/** Makes `holder` the one; sent by whoever has just won the lease. */
export const ElectLeader = message("ElectLeader", { holder: Token })
export const ElectionCommand = ElectLeader
export type ElectionCommand = typeof ElectionCommand.Type

/** An election refuses nothing. */
export const ElectionRejection = Schema.Never
