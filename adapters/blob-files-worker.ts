/**
 * The plain blob store's worker thread: the engine behind a message port, so that hashing, syncs
 * and SQLite never hold up the thread that answers requests.
 */
import { parentPort, workerData } from "node:worker_threads"
import { type Engine, type EngineOptions, openEngine } from "./blob-files-engine.ts"
import { faultOf } from "#actors/blob-storage/blob-fault.ts"
import type { Call, Reply, Started } from "./blob-files-protocol.ts"

const port = parentPort
if (port === null) throw new Error("this file runs as a worker thread only")

/**
 * The buffers of an answer that carries bytes: they move to the other thread, nothing is copied.
 */
const buffersOf = (value: unknown): Array<ArrayBuffer> => {
  if (value instanceof Uint8Array && value.buffer instanceof ArrayBuffer) return [value.buffer]
  return typeof value === "object" && value !== null && "data" in value ? buffersOf(value.data) : []
}

const answer = async (engine: Engine, { sequence, method, parameters }: Call): Promise<void> => {
  try {
    // Each call was typed as one of the engine's methods with its parameters where it was made.
    const run = engine[method] as (...parameters: ReadonlyArray<unknown>) => Promise<unknown>
    const value = await run(...parameters)
    port.postMessage({ sequence, ok: true, value } satisfies Reply, buffersOf(value))
  } catch (cause) {
    port.postMessage({ sequence, ok: false, fault: faultOf(cause) } satisfies Reply)
  }
  if (method === "shut") port.close()
}

const serve = async () => {
  // Only blob-files-thread.ts starts this file, with these options.
  const engine = await openEngine(workerData as EngineOptions)
  port.on("message", (call: Call) => void answer(engine, call))
  port.postMessage({ ok: true, usage: await engine.usage() } satisfies Started)
}

serve().catch((cause: unknown) => {
  port.postMessage({ ok: false, fault: faultOf(cause) } satisfies Started)
  port.close()
})
