/** Sets the high-water mark once everything that depends on the log has started. */
import { Effect, Option, Stream } from "effect"
import { Log } from "#events/log.ts"
import { LogWatch } from "./watch.ts"

/**
 * Sets the high-water mark to the log's last commit, once every read model has been compared with
 * the log. Until then a mark from before a restore explains why a read model is ahead of the log.
 */
export const settleMark = Effect.gen(function* () {
  const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
  if (watch === undefined || watch.problem() !== undefined) return
  const log = yield* Log
  const head = yield* log.head("")
  if (head === 0) return
  const [last] = yield* Stream.runCollect(Stream.take(log.read("", head - 1), 1))
  if (last !== undefined) yield* watch.settle({ position: last.position, hash: last.hash })
})
