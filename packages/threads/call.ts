/** A call to a thread: a question to its program, and the answer; in the order of questions. */
import { parentPort, type ResourceLimits, Worker } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"

export interface ThreadCallOptions {
  /** What its errors call the thread, as in "The reading thread". */
  readonly name: string
  /** The thread's program, which answers by `answerCalls`. */
  readonly program: URL
  readonly workerData?: unknown
  readonly resourceLimits?: ResourceLimits
  /** A thread that owes an answer for so long is given up; without it, none is. */
  readonly answer_ms_max?: number
}

export interface ThreadCall<Question, Answer> {
  /** Rejects with an Error that says why; its cause is what the thread itself failed of. */
  readonly ask: (question: Question) => Promise<Answer>
  /** What is asked still is rejected; a later question starts a thread again. */
  readonly end: () => Promise<void>
}

/** What the thread says to each question. */
type Said<Answer> = { readonly answer: Answer } | { readonly error: string }

/**
 * The near side. The thread starts with the first question, and anew with the next one where it
 * ended; the process stays alive for it only while a question is open. Questions are as many as
 * whoever asks lets wait.
 */
export const threadCall = <Question, Answer>(
  options: ThreadCallOptions,
): ThreadCall<Question, Answer> => {
  const { name, program, workerData, resourceLimits, answer_ms_max } = options
  const waiting: Array<PromiseWithResolvers<Answer>> = []
  let thread: Worker | undefined

  const giveUp = async (which: Worker, why: string, cause?: unknown) => {
    // What an earlier thread says is about questions that were answered already.
    if (which !== thread) return
    thread = undefined
    for (const { reject } of waiting.splice(0)) reject(new Error(`${name} ${why}`, { cause }))
    await which.terminate()
  }
  const start = () => {
    const made = new Worker(program, { workerData, resourceLimits })
    made.on("message", (said: Said<Answer>) => {
      if (made !== thread) return
      const asked = waiting.shift()
      if (waiting.length === 0) made.unref()
      if ("answer" in said) asked?.resolve(said.answer)
      else asked?.reject(new Error(said.error))
    })
    made.on("error", (error) => void giveUp(made, `failed: ${causeText(error)}`, error))
    made.on("exit", () => void giveUp(made, "ended"))
    return made
  }
  return {
    ask: async (question) => {
      thread ??= start()
      const asked = thread
      asked.postMessage(question)
      asked.ref()
      const answer = Promise.withResolvers<Answer>()
      waiting.push(answer)
      if (answer_ms_max === undefined) return answer.promise
      const late = `said nothing for ${answer_ms_max} ms`
      const timer = setTimeout(() => void giveUp(asked, late), answer_ms_max)
      return answer.promise.finally(() => clearTimeout(timer))
    },
    end: async () => {
      if (thread !== undefined) await giveUp(thread, "was ended")
    },
  }
}

/** The far side, in the thread: what `answer` throws is the answer that there is none, and why. */
export const answerCalls = <Question, Answer>(
  answer: (question: Question) => Answer,
  /** Memory of an answer that is handed over instead of copied. */
  handedOf: (answer: Answer) => ReadonlyArray<ArrayBuffer> = () => [],
) => {
  const said = (question: Question) => {
    const answered = answer(question)
    parentPort?.postMessage({ answer: answered } satisfies Said<Answer>, handedOf(answered))
  }
  parentPort?.on("message", (question: Question) => {
    try {
      said(question)
    } catch (error) {
      parentPort?.postMessage({ error: causeText(error) } satisfies Said<Answer>)
    }
  })
}
