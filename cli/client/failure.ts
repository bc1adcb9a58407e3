/** The error that ends a command over HTTP: what happened, and what to do next. */
import { Runtime, Schema } from "effect"
import { type Ending, exit_codes } from "#cli/client/exit-code.ts"

// A table of literals as keys: the schema's type is exactly Ending.
const Endings = Schema.Literals(Object.keys(exit_codes) as ReadonlyArray<Ending>)

/** The message's second line says what to do next; the ending selects the exit code. */
export class ClientFailed extends Schema.TaggedError<ClientFailed>()("ClientFailed", {
  message: Schema.String,
  ending: Endings,
  /** If a retry may help: the wait that the server requests before it, in ms, or 0. */
  retry_after_ms: Schema.optionalKey(Schema.Finite),
}) {
  override readonly [Runtime.errorExitCode] = exit_codes[this.ending][0]
}

/** A failure, with the next step if there is one. */
export const failure = (ending: Ending, what: string, next?: string, again_ms?: number) =>
  new ClientFailed({
    ending,
    message: next === undefined ? what : `${what}\n  next: ${next}`,
    ...(again_ms !== undefined && { retry_after_ms: again_ms }),
  })

export const isFailure = Schema.is(ClientFailed)
