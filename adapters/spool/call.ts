/** Client of a spool's thread. */
import { Effect } from "effect"
import { SpoolFailed } from "#actors/spool.ts"
import type { SpoolRequest, SpoolState } from "#adapters/spool/file.ts"
import type { ThreadOptions } from "#adapters/spool/thread.ts"
import { threadCall } from "#threads"

/** Sends a request to a spool's thread; one at a time. */
export type SpoolCall = (request: SpoolRequest) => Effect.Effect<SpoolState, SpoolFailed>

const program = new URL("./thread.ts", import.meta.url)

/** The thread starts with the first request and ends with the request `close`. */
export const spoolThread = (options: ThreadOptions): SpoolCall => {
  const thread = threadCall<SpoolRequest, SpoolState>({
    name: "its thread",
    program,
    workerData: options,
  })
  return (request) => {
    const response = Effect.tryPromise({
      try: () => thread.request(request),
      // A call only rejects with Errors.
      catch: (error) => new SpoolFailed({ detail: `${options.path}: ${(error as Error).message}` }),
    })
    return request.call === "close"
      ? Effect.ensuring(response, Effect.promise(thread.end))
      : response
  }
}
