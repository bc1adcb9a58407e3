/** The near side of a spool's thread. */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { SpoolFailed } from "#actors/spool.ts"
import type { Held, Question } from "#adapters/spool-file.ts"
import type { Answer, Place } from "#adapters/spool-thread.ts"

/** Asks a spool's file, one question after another. */
export type Ask = (question: Question) => Effect.Effect<Held, SpoolFailed>

/**
 * Starts the thread at the first question, and again at the next one where it died. It keeps the
 * process alive only while a question is open, and ends with the question `close`.
 */
export const spoolThread = (place: Place): Ask => {
  const pending = new Map<number, (answer: Answer) => void>()
  let asked = 0
  let thread: Worker | undefined

  const start = () => {
    const worker = new Worker(new URL("./spool-thread.ts", import.meta.url), { workerData: place })
    const end = (error: string) => {
      if (thread !== worker) return
      thread = undefined
      for (const [id, answer] of pending) answer({ id, error })
      pending.clear()
    }
    worker.on("message", (answer: Answer) => {
      pending.get(answer.id)?.(answer)
      pending.delete(answer.id)
      if (pending.size === 0) worker.unref()
    })
    worker.on("error", ({ message }) => end(message))
    worker.on("exit", () => end("its thread ended"))
    return worker
  }

  return (question) =>
    Effect.callback<Held, SpoolFailed>((resume) => {
      const id = ++asked
      pending.set(id, (answer) =>
        resume(
          "error" in answer
            ? Effect.fail(new SpoolFailed({ detail: `${place.path}: ${answer.error}` }))
            : Effect.succeed(answer),
        ),
      )
      thread ??= start()
      thread.ref()
      thread.postMessage({ ...question, id })
    })
}
