/** Captures the output of effects. */
import { Console, Effect, Predicate, Result, Runtime } from "effect"

/** The exit code and message of a failed command; undefined if it succeeded. */
export const failing = (value: Result.Result<unknown, unknown>) => {
  if (Result.isSuccess(value)) return undefined
  const { failure } = value
  const message = Predicate.hasProperty(failure, "message") ? String(failure.message) : ""
  return [Runtime.getErrorExitCode(failure) ?? 1, message]
}

export interface Printed<A> {
  readonly value: A
  readonly out: ReadonlyArray<string>
  readonly err: ReadonlyArray<string>
}

/** Captures the lines that an effect prints, and returns them with its value. */
export const printed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const lines = { out: Array.of<string>(), err: Array.of<string>() }
  const into =
    (kept: Array<string>) =>
    (...parts: ReadonlyArray<unknown>) => {
      kept.push(parts.map(String).join(" "))
    }
  const kept: Console.Console = { ...console, log: into(lines.out), error: into(lines.err) }
  const value = yield* Effect.provideService(effect, Console.Console, kept)
  const answer: Printed<A> = { value, ...lines }
  return answer
})
