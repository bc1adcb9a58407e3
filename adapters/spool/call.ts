/** The near side of a spool's thread. */
import { Effect } from "effect"
import { SpoolFailed } from "#actors/spool.ts"
import type { Held, Question } from "#adapters/spool/file.ts"
import type { Place } from "#adapters/spool/thread.ts"
import { threadCall } from "#threads"

/** Asks a spool's file, one question after another. */
export type Ask = (question: Question) => Effect.Effect<Held, SpoolFailed>

const program = new URL("./thread.ts", import.meta.url)

/** The thread starts at the first question, and ends with the question `close`. */
export const spoolThread = (place: Place): Ask => {
  const thread = threadCall<Question, Held>({ name: "its thread", program, workerData: place })
  return (question) => {
    const asked = Effect.tryPromise({
      try: () => thread.request(question),
      // Only Errors come of a call.
      catch: (error) => new SpoolFailed({ detail: `${place.path}: ${(error as Error).message}` }),
    })
    return question.call === "close" ? Effect.ensuring(asked, Effect.promise(thread.end)) : asked
  }
}
