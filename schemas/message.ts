import { Schema } from "effect"

/** A command or an event: a struct whose `type` names it. */
export const message = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields,
) => Schema.Struct({ type: Schema.tag(type), ...fields })

export interface Message {
  readonly type: string
}

/** Longest token of a bus subject: a commit's subject stays under 256 bytes with four of them. */
export const token_chars_max = 64

/** An identifier that is also one token of a bus subject: no dot, space or wildcard. */
export const Token = Schema.String.check(
  Schema.isPattern(/^[\w-]+$/),
  Schema.isMaxLength(token_chars_max),
)
