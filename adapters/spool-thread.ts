/** The thread that has a spool's file, so that no other one waits for the disk. */
import { parentPort, workerData } from "node:worker_threads"
import { type Held, type Question, spoolFile } from "#adapters/spool-file.ts"

export interface Place {
  readonly path: string
  readonly now_ms: number
}

export type Asked = Question & { readonly id: number }
export type Answer = { readonly id: number } & (Held | { readonly error: string })

// What `spoolThread` starts it with.
const { path, now_ms } = workerData as Place
let file: ReturnType<typeof spoolFile> | undefined

parentPort?.on("message", (asked: Asked) => {
  const { id } = asked
  try {
    file ??= spoolFile(path, now_ms)
    parentPort?.postMessage({ id, ...file(asked) } satisfies Answer)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    parentPort?.postMessage({ id, error: reason } satisfies Answer)
  }
  if (asked.call === "close") parentPort?.close()
})
