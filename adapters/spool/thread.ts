/** Worker thread of a spool's file, so that no other thread waits for the disk. */
import { workerData } from "node:worker_threads"
import { type SpoolRequest, spoolFile } from "#adapters/spool/file.ts"
import { serveCalls } from "#threads"

export interface ThreadOptions {
  readonly path: string
  readonly now_ms: number
}

// Passed by `spoolThread`.
const { path, now_ms } = workerData as ThreadOptions
let file: ReturnType<typeof spoolFile> | undefined

serveCalls((request: SpoolRequest) => {
  file ??= spoolFile(path, now_ms)
  return file(request)
})
