/** Events of an issued token. Stream: system.token.<its hash>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import { IssueToken } from "#schemas/system/token.ts"

export const TokenIssued = message("TokenIssued", Struct.omit(IssueToken.fields, ["type"]))
export const TokenRevoked = message("TokenRevoked", {})

export const TokenEvent = Schema.Union([TokenIssued, TokenRevoked])
export type TokenEvent = typeof TokenEvent.Type
