/** What an effect prints. */
import { Console, Effect } from "effect"

export interface Printed<A> {
  readonly value: A
  readonly out: ReadonlyArray<string>
  readonly err: ReadonlyArray<string>
}

/** Keeps the lines that an effect prints from the terminal, and answers them with its value. */
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
