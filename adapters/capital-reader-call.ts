/** Asks the dashboard's thread one question at a time; starts it, and starts it anew. */
import { Worker } from "node:worker_threads"
import type { Answer, Question } from "#adapters/capital-reader-thread.ts"
import type { Shown } from "#gateway/capital-pressure/dashboard-reader.ts"

export interface CallOptions {
  /** The file that the thread reads. */
  readonly path: string
  /** A thread that says nothing for so long is given up. */
  readonly answer_ms_max: number
  /** The thread's program. */
  readonly program: URL
}

export interface Call {
  /** Rejects with an Error that says why; never called before the last one was answered. */
  readonly ask: (question: Question) => Promise<Shown>
  readonly end: () => Promise<void>
}

/** Measured: with V8's own 16 a load keeps 25 MB more, and is not faster. */
const resourceLimits = { maxYoungGenerationSizeMb: 8 }

export const call = ({ path, answer_ms_max, program }: CallOptions): Call => {
  let worker: Worker | undefined
  let pending: PromiseWithResolvers<Shown> | undefined

  const settle = (answer: Answer) => {
    const asked = pending
    pending = undefined
    if ("shown" in answer) asked?.resolve(answer.shown)
    else asked?.reject(new Error(answer.error))
  }
  const giveUp = (which: Worker | undefined, error: string) => {
    // What an earlier thread says is about a question that was answered already.
    if (which === undefined || which !== worker) return
    worker = undefined
    void which.terminate()
    settle({ error })
  }
  const start = () => {
    const made = new Worker(program, { workerData: path, resourceLimits })
    made.unref()
    made.on("message", (answer: Answer) => {
      if (made === worker) settle(answer)
    })
    made.on("error", (error) => giveUp(made, `The reading thread failed: ${String(error)}`))
    made.on("exit", () => giveUp(made, "The reading thread ended."))
    return made
  }
  return {
    ask: async (question) => {
      worker ??= start()
      const asked = worker
      pending = Promise.withResolvers()
      const late = `The reading thread said nothing for ${answer_ms_max} ms.`
      const timer = setTimeout(() => giveUp(asked, late), answer_ms_max)
      asked.postMessage(question)
      return pending.promise.finally(() => clearTimeout(timer))
    },
    end: async () => void (await worker?.terminate()),
  }
}
