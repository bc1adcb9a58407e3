/** Compares two SQLite files in a thread of its own, so that this one stays free. */
import { Worker } from "node:worker_threads"
import { Effect, type Scope } from "effect"
import type { Comparison, Told } from "#adapters/sqlite-comparison-thread.ts"
import { type Comparing, DatabaseUnusable } from "#projections/database.ts"

/**
 * Begins: from here on the kept file is seen as it is, whatever is written to it. The thread ends
 * with the scope.
 */
export const comparison = Effect.fnUntraced(function* (
  asked: Comparison,
): Effect.fn.Return<Comparing, DatabaseUnusable, Scope.Scope> {
  const thread = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Worker(new URL("./sqlite-comparison-thread.ts", import.meta.url), {
          workerData: asked,
        }),
    ),
    (worker) => Effect.promise(() => worker.terminate()),
  )
  const failed = (why: string) =>
    new DatabaseUnusable({ detail: `${asked.kept} cannot be compared: ${why}.` })
  const next = Effect.callback<Told, DatabaseUnusable>((resume) => {
    const told = (answer: Told) =>
      resume("error" in answer ? Effect.fail(failed(answer.error)) : Effect.succeed(answer))
    const ended = (cause: unknown) => resume(Effect.fail(failed(String(cause))))
    thread.once("message", told)
    thread.once("error", ended)
    return Effect.sync(() => {
      thread.off("message", told)
      thread.off("error", ended)
    })
  })
  const begun = yield* next
  if (!("position" in begun)) return yield* failed("the thread said something else")
  return {
    position: begun.position,
    differences: Effect.gen(function* () {
      thread.postMessage("built")
      const answer = yield* next
      if ("differences" in answer) return answer.differences
      return yield* failed("the thread said something else")
    }),
  }
})
