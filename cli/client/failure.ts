/** What ends a verb over HTTP: what is so, and what to do next. */
import { Runtime, Schema } from "effect"
import { type Ending, exit_codes } from "#cli/client/exit-code.ts"

// A table of literals as keys: the schema's type is exactly Ending.
const Endings = Schema.Literals(Object.keys(exit_codes) as ReadonlyArray<Ending>)

/** The message is for a person, its second line says what to do; the ending is the exit code. */
export class ClientFailed extends Schema.TaggedError<ClientFailed>()("ClientFailed", {
  message: Schema.String,
  ending: Endings,
  /** Where another try may help: how long the server asks to wait before it, in ms, or 0. */
  again_ms: Schema.optionalKey(Schema.Finite),
}) {
  override readonly [Runtime.errorExitCode] = exit_codes[this.ending][0]
}

/** A failure with what to do next, where there is something to do. */
export const failure = (ending: Ending, what: string, next?: string, again_ms?: number) =>
  new ClientFailed({
    ending,
    message: next === undefined ? what : `${what}\n  next: ${next}`,
    ...(again_ms !== undefined && { again_ms }),
  })

export const isFailure = Schema.is(ClientFailed)
