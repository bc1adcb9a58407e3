/** Asks the mirror's thread, several searches at once; starts it, and starts it anew. */
import { Worker } from "node:worker_threads"
import type { Answer, Question } from "#adapters/carrier-mirror-thread.ts"

export interface MirrorCall {
  /** Rejects with an Error whose message is a search's reason. */
  readonly ask: (question: Exclude<Question, { readonly end: true }>) => Promise<Answer>
  /** A search needs nothing more; its answer under way is dropped. */
  readonly forget: (id: number) => void
  readonly end: () => Promise<void>
}

/** A piece takes a millisecond, a cold disk a hundred: a thread so late never answers. */
const answer_ms_max = 30_000
const program = new URL("./carrier-mirror-thread.ts", import.meta.url)
/** Rows leave as they are made: the thread holds next to nothing. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 }

/** The thread starts with the first question. `program` is replaced in tests alone. */
export const mirrorCall = (path: string, options?: { program?: URL; answer_ms_max?: number }) => {
  const late_ms = options?.answer_ms_max ?? answer_ms_max
  let worker: Worker | undefined
  const pending = new Map<number, PromiseWithResolvers<Answer>>()

  const settle = (answer: Answer) => {
    const asked = pending.get(answer.id)
    pending.delete(answer.id)
    if ("error" in answer) asked?.reject(new Error(answer.error))
    else asked?.resolve(answer)
  }
  const giveUp = (which: Worker, error: string) => {
    // What an earlier thread says is about questions that were answered already.
    if (which !== worker) return
    worker = undefined
    void which.terminate()
    for (const id of [...pending.keys()]) settle({ id, error })
  }
  const start = () => {
    const made = new Worker(options?.program ?? program, { workerData: path, resourceLimits })
    made.unref()
    made.on("message", (answer: Answer) => {
      if (made === worker) settle(answer)
    })
    made.on("error", () => giveUp(made, "the mirror's thread failed"))
    made.on("exit", () => giveUp(made, "the mirror's thread ended"))
    return made
  }
  const call: MirrorCall = {
    ask: async (question) => {
      worker ??= start()
      const asked = worker
      const waiting = Promise.withResolvers<Answer>()
      pending.set(question.id, waiting)
      const tooLate = () => giveUp(asked, "the mirror's thread does not answer")
      const timer = setTimeout(tooLate, late_ms)
      asked.postMessage(question)
      return waiting.promise.finally(() => clearTimeout(timer))
    },
    forget: (id) => {
      pending.delete(id)
      worker?.postMessage({ id, end: true } satisfies Question)
    },
    end: async () => {
      const last = worker
      if (last !== undefined) giveUp(last, "the server stops")
      await last?.terminate()
    },
  }
  return call
}
