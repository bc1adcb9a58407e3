/** A thread of the pool and its tasks. It is restarted when it exits unexpectedly. */
import { Worker } from "node:worker_threads"
import { sharedState } from "./images/once-in-process.ts"
import {
  end,
  type StartupMessage,
  type Task,
  type TaskResult,
  type ThreadOptions,
} from "./protocol.ts"

export interface PoolWorker {
  /** Resolves when the thread is ready for the first time; rejects if it cannot start. */
  readonly started: Promise<void>
  readonly isFree: () => boolean
  /** Whether it has one quick task, so that the next one may be queued behind it. */
  readonly isQuick: () => boolean
  /** The batch size of its session; 0 without a session or before it is ready. */
  readonly batch: () => number
  /** For a thread that is free or quick. Tasks run in order; the buffers are transferred. */
  readonly assign: (
    task: Task,
    buffers: ReadonlyArray<ArrayBuffer>,
    is_quick: boolean,
    done: (answer: TaskResult) => void,
  ) => void
  /** Stops the thread after its current batch, or after `ms_max` if that takes longer. */
  readonly end: (ms_max: number) => Promise<void>
}

export interface PoolWorkerOptions {
  /** The name in `top -H`, at most 15 bytes. */
  readonly name: string
  /** The thread's program. */
  readonly program: URL
  readonly thread: ThreadOptions
  /** Delays the start; if it rejects, the thread never starts. */
  readonly after?: Promise<void> | undefined
  /** The thread can accept a task. */
  readonly onFree: () => void
  /** The thread exited unexpectedly and will be restarted. */
  readonly onLost: (why: string) => void
}

/** The backoff between restarts of a thread that does not become ready. */
const restart_ms_min = 100
const restart_ms_max = 30_000

/** Decoded images are outside V8's heap, so a small young generation is enough. */
const resourceLimits = { maxYoungGenerationSizeMb: 8 }

/** Asks the thread to stop, and terminates it at the deadline. */
const stop = async (worker: Worker, ms_max: number) => {
  const exited = new Promise((resolve) => worker.once("exit", resolve))
  worker.postMessage(end)
  const deadline = setTimeout(() => void worker.terminate(), ms_max)
  await exited
  clearTimeout(deadline)
}

export const poolWorker = (options: PoolWorkerOptions): PoolWorker => {
  const { name, program, thread, after, onFree, onLost } = options
  const started = Promise.withResolvers<void>()
  let worker: Worker | undefined
  const tasks: Array<{ readonly is_quick: boolean; readonly done: (answer: TaskResult) => void }> =
    []
  let is_ready = false
  let batch = 0
  let is_ending = false
  let pause_ms = restart_ms_min
  let timer: NodeJS.Timeout | undefined

  const onExit = (which: Worker, why: string) => {
    if (which !== worker) return
    worker = undefined
    is_ready = false
    const detail = is_ending
      ? "The service is ending."
      : `The thread that processed it exited: ${why}`
    for (const { done } of tasks.splice(0)) done({ kind: "failed", detail })
    if (is_ending) return
    started.reject(new Error(why))
    onLost(why)
    timer = setTimeout(start, pause_ms)
    pause_ms = Math.min(Math.max(restart_ms_min, pause_ms * 2), restart_ms_max)
  }
  const onStartup = (which: Worker, first: StartupMessage) => {
    if (first.kind === "unusable") return onExit(which, first.detail)
    is_ready = true
    batch = first.batch
    pause_ms = 0
    started.resolve()
    onFree()
  }
  const start = () => {
    if (is_ending) return
    // Must exist before the thread starts, so that the thread inherits it.
    sharedState()
    const next_worker = new Worker(program, { name, workerData: thread, resourceLimits })
    worker = next_worker
    next_worker.once("message", (first: StartupMessage) => {
      next_worker.on("message", (answer: TaskResult) => {
        if (next_worker !== worker) return
        tasks.shift()?.done(answer)
        onFree()
      })
      onStartup(next_worker, first)
    })
    next_worker.on("error", (error) => onExit(next_worker, error.message))
    next_worker.on("exit", () => onExit(next_worker, "it stopped"))
  }
  if (after === undefined) start()
  else after.then(start, started.reject)
  // Avoids an unhandled rejection if the promise is never awaited.
  started.promise.catch(() => undefined)

  return {
    started: started.promise,
    isFree: () => is_ready && tasks.length === 0 && !is_ending,
    isQuick: () => is_ready && tasks.length === 1 && tasks[0]?.is_quick === true && !is_ending,
    batch: () => batch,
    assign: (task, buffers, is_quick, done) => {
      tasks.push({ is_quick, done })
      worker?.postMessage(task, buffers)
    },
    end: async (ms_max) => {
      is_ending = true
      clearTimeout(timer)
      if (worker !== undefined) await stop(worker, ms_max)
    },
  }
}
