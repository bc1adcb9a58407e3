/** Compares two SQLite files in a thread of its own, so that this one stays free. */
import { Effect, type Scope } from "effect"
import { type Comparing, DatabaseUnusable } from "#projections/database.ts"
import { threadCall } from "#threads"
import type { Comparison, Question, Told } from "./comparison-thread.ts"

const program = new URL("./comparison-thread.ts", import.meta.url)

/**
 * Begins: from here on the kept file is seen as it is, whatever is written to it. The thread ends
 * with the scope.
 */
export const comparison = Effect.fnUntraced(function* (
  files: Comparison,
): Effect.fn.Return<Comparing, DatabaseUnusable, Scope.Scope> {
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() =>
      threadCall<Question, Told>({ name: "its thread", program, workerData: files }),
    ),
    ({ end }) => Effect.promise(end),
  )
  const failed = (why: string) =>
    new DatabaseUnusable({ detail: `${files.kept} cannot be compared: ${why}.` })
  const ask = (question: Question) =>
    Effect.tryPromise({
      try: () => thread.request(question),
      // Only Errors come of a call.
      catch: (error) => failed((error as Error).message),
    })
  const begun = yield* ask("begin")
  if (!("position" in begun)) return yield* failed("the thread said something else")
  return {
    position: begun.position,
    differences: Effect.gen(function* () {
      const answer = yield* ask("compare")
      if ("differences" in answer) return answer.differences
      return yield* failed("the thread said something else")
    }),
  }
})
