/** One thread of the predictor, and the tasks that it has; started anew when it ends by itself. */
import { Worker } from "node:worker_threads"
import { sharedState } from "./images/once.ts"
import { type Answer, end, type Started, type Task, type ThreadOptions } from "./protocol.ts"

export interface PlantWorker {
  /** Resolves once it can work for the first time; rejects where it cannot. */
  readonly started: Promise<void>
  readonly isFree: () => boolean
  /** Whether it works on a quick task alone, and may have the next one before that is done. */
  readonly isQuick: () => boolean
  /** Images that its session takes at once; 0 without a session, or until it can work. */
  readonly batch: () => number
  /** Called when it is free, or quick. Tasks are done in this order; the buffers are moved. */
  readonly give: (
    task: Task,
    buffers: ReadonlyArray<ArrayBuffer>,
    is_quick: boolean,
    done: (answer: Answer) => void,
  ) => void
  /** Ends it after the batch that it has, or in so many milliseconds. */
  readonly end: (ms_max: number) => Promise<void>
}

export interface PlantWorkerOptions {
  /** What the system shows, as in `top -H`: at most 15 bytes. */
  readonly name: string
  /** The thread's program. */
  readonly program: URL
  readonly thread: ThreadOptions
  /** It starts when this resolves, and never where it rejects; absent: at once. */
  readonly after?: Promise<void> | undefined
  /** It can be given a task, or another one. */
  readonly onFree: () => void
  /** It ended although nobody wanted it to; it is started anew. */
  readonly onLost: (why: string) => void
}

/** Between two starts of a thread that does not get as far as to work, at first and at most. */
const restart_ms_min = 100
const restart_ms_max = 30_000

/** What is decoded lies outside of V8's heap; young objects are few. */
const resourceLimits = { maxYoungGenerationSizeMb: 8 }

/** Told to end, and ended where it does not. */
const ended = async (worker: Worker, ms_max: number) => {
  const exited = new Promise((resolve) => worker.once("exit", resolve))
  worker.postMessage(end)
  const deadline = setTimeout(() => void worker.terminate(), ms_max)
  await exited
  clearTimeout(deadline)
}

export const plantWorker = (options: PlantWorkerOptions): PlantWorker => {
  const { name, program, thread, after, onFree, onLost } = options
  const started = Promise.withResolvers<void>()
  let worker: Worker | undefined
  const given: Array<{ readonly is_quick: boolean; readonly done: (answer: Answer) => void }> = []
  let is_ready = false
  let batch = 0
  let is_ending = false
  let pause_ms = restart_ms_min
  let timer: NodeJS.Timeout | undefined

  const lost = (which: Worker, why: string) => {
    if (which !== worker) return
    worker = undefined
    is_ready = false
    const detail = is_ending ? "The service is ending." : `The thread that had it ended: ${why}`
    for (const { done } of given.splice(0)) done({ kind: "failed", detail })
    if (is_ending) return
    started.reject(new Error(why))
    onLost(why)
    timer = setTimeout(start, pause_ms)
    pause_ms = Math.min(Math.max(restart_ms_min, pause_ms * 2), restart_ms_max)
  }
  const begun = (which: Worker, first: Started) => {
    if (first.kind === "unusable") return lost(which, first.detail)
    is_ready = true
    batch = first.batch
    pause_ms = 0
    started.resolve()
    onFree()
  }
  const start = () => {
    if (is_ending) return
    // Each thread has it from its start on.
    sharedState()
    const made = new Worker(program, { name, workerData: thread, resourceLimits })
    worker = made
    made.once("message", (first: Started) => {
      made.on("message", (answer: Answer) => {
        if (made !== worker) return
        given.shift()?.done(answer)
        onFree()
      })
      begun(made, first)
    })
    made.on("error", (error) => lost(made, error.message))
    made.on("exit", () => lost(made, "it stopped"))
  }
  if (after === undefined) start()
  else after.then(start, started.reject)
  // Whoever waits for it is told; nobody has to.
  started.promise.catch(() => undefined)

  return {
    started: started.promise,
    isFree: () => is_ready && given.length === 0 && !is_ending,
    isQuick: () => is_ready && given.length === 1 && given[0]?.is_quick === true && !is_ending,
    batch: () => batch,
    give: (task, buffers, is_quick, done) => {
      given.push({ is_quick, done })
      worker?.postMessage(task, buffers)
    },
    end: async (ms_max) => {
      is_ending = true
      clearTimeout(timer)
      if (worker !== undefined) await ended(worker, ms_max)
    },
  }
}
