/**
 * One thread that answers requests for blobs, from the process's own: it is started again where it
 * ends by itself.
 *
 * Source: decision 0168.
 */
import { setTimeout as pause } from "node:timers/promises"
import { MessageChannel, Worker } from "node:worker_threads"
import { answerEngineCalls, type EngineDesk } from "#adapters/blob-storage/engine/desk.ts"
import type { Caller } from "#gateway/caller.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"
import type { FromWorker, Measured, ToWorker, WorkerStart } from "./message.ts"

/** Before a thread that ended is started again, in milliseconds. */
const again_ms = 1000

export interface WorkerThreadOptions {
  /** The thread's program. */
  readonly program: string
  readonly start: Omit<WorkerStart, "engine" | "volume" | "settings">
  readonly settings: () => Settings
  readonly desk: EngineDesk
  /** Who shows this token, if anybody may enter with it. */
  readonly who: (token: string) => Promise<Caller | undefined>
  /** Told what it answered, and whenever its connections may have changed. */
  readonly measured: (answers: ReadonlyArray<Measured>) => void
  readonly report: (problem: string) => void
}

export interface WorkerThread {
  /** Resolves when it listens the first time; rejects where it cannot. */
  readonly started: Promise<void>
  readonly retire: () => void
  /** Lets it answer what is under way, and no more. */
  readonly close: () => void
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
  readonly kill: () => Promise<void>
}

/** Starts the thread once; answers it when it listens, and whenever it ends. */
const startOnce = (options: WorkerThreadOptions) => {
  const { program, desk, who, measured, report } = options
  const { port1: engine, port2 } = new MessageChannel()
  // Nothing of the volume may happen between what the thread begins with and what it is told.
  const watching = desk.sharing.watch((news) => say({ say: "news", news }))
  let settings = options.settings()
  const { volume } = watching
  const workerData: WorkerStart = { ...options.start, settings, volume, engine }
  const name = `blobs ${options.start.place}`
  const worker = new Worker(program, { workerData, transferList: [engine], name })
  const say = (message: ToWorker) => worker.postMessage(message)
  const listening = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  answerEngineCalls(desk, port2)

  const sayWho = async (number: number, token: string) => {
    const now = options.settings()
    if (now !== settings) {
      settings = now
      say({ say: "settings", settings })
    }
    // A defect is told; whoever it is goes over, and is told of it there.
    const caller = await who(token).catch((cause: unknown) => {
      report(`Who asks the thread ${name} is not known: ${causeText(cause)}`)
      return undefined
    })
    say({ say: "caller", number, caller })
  }
  worker.on("message", (message: FromWorker) => {
    if (message.say === "listens") listening.resolve()
    else if (message.say === "who") void sayWho(message.number, message.token)
    else measured(message.answers)
  })
  worker.on("error", (cause) => {
    listening.reject(cause)
    report(`The thread ${name} failed: ${causeText(cause)}`)
  })
  worker.on("exit", () => {
    watching.end()
    port2.close()
    Atomics.store(options.start.connections, options.start.place, 0)
    measured([])
    listening.reject(new Error(`The thread ${name} ended before it listened.`))
    ended.resolve()
  })
  return { say, listening: listening.promise, ended: ended.promise, worker }
}

/** Starts the thread, and again whenever it ends before it was told to. */
export const workerThread = (options: WorkerThreadOptions): WorkerThread => {
  let is_closing = false
  let thread = startOnce(options)
  const { listening: started } = thread

  const run = async () => {
    for (;;) {
      await thread.ended
      if (is_closing) return
      await pause(again_ms)
      if (is_closing) return
      thread = startOnce(options)
      // It is told where it fails.
      thread.listening.catch(() => undefined)
    }
  }
  // Where it never listened nothing is to be kept up.
  const ended = started.then(run, () => undefined)
  return {
    started,
    ended,
    retire: () => thread.say({ say: "retire" }),
    close: () => {
      is_closing = true
      thread.say({ say: "close" })
    },
    kill: async () => {
      is_closing = true
      await thread.worker.terminate()
    },
  }
}
