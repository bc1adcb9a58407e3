/** Client of a spool's thread. */
import { Effect } from "effect"
import { SpoolFailed } from "#actors/spool.ts"
import type { Held, Question } from "#adapters/spool/file.ts"
import type { Place } from "#adapters/spool/thread.ts"
import { threadCall } from "#threads"

/** Sends a request to a spool's thread; one at a time. */
export type Ask = (question: Question) => Effect.Effect<Held, SpoolFailed>

const program = new URL("./thread.ts", import.meta.url)

/** The thread starts with the first request and ends with the request `close`. */
export const spoolThread = (place: Place): Ask => {
  const thread = threadCall<Question, Held>({ name: "its thread", program, workerData: place })
  return (question) => {
    const asked = Effect.tryPromise({
      try: () => thread.request(question),
      // A call only rejects with Errors.
      catch: (error) => new SpoolFailed({ detail: `${place.path}: ${(error as Error).message}` }),
    })
    return question.call === "close" ? Effect.ensuring(asked, Effect.promise(thread.end)) : asked
  }
}
