/** Compares two SQLite files in a thread, so that the event loop stays free. */
import { Effect, type Scope } from "effect"
import { type DatabaseComparison, DatabaseUnusable } from "#projections/database.ts"
import { threadCall } from "#threads"
import type { Comparison, ComparisonResponse, ComparisonStep } from "./comparison-thread.ts"

const program = new URL("./comparison-thread.ts", import.meta.url)

/**
 * Starts a comparison. It reads `kept` as of now; later writes do not affect it. The thread stops
 * with the scope.
 */
export const comparison = Effect.fnUntraced(function* (
  files: Comparison,
): Effect.fn.Return<DatabaseComparison, DatabaseUnusable, Scope.Scope> {
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() =>
      threadCall<ComparisonStep, ComparisonResponse>({
        name: "its thread",
        program,
        workerData: files,
      }),
    ),
    ({ end }) => Effect.promise(end),
  )
  const failed = (reason: string) =>
    new DatabaseUnusable({ detail: `${files.kept} cannot be compared: ${reason}.` })
  const send = (step: ComparisonStep) =>
    Effect.tryPromise({
      try: () => thread.request(step),
      // A call rejects only with Errors.
      catch: (error) => failed((error as Error).message),
    })
  const started = yield* send("begin")
  if (!("position" in started)) return yield* failed("the thread sent an unexpected response")
  return {
    position: started.position,
    differences: Effect.gen(function* () {
      const response = yield* send("compare")
      if ("differences" in response) return response.differences
      return yield* failed("the thread sent an unexpected response")
    }),
  }
})
