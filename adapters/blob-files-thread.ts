/**
 * The main thread's end of the plain blob store's worker: calls go out, replies come back, and
 * should the worker die, every call that waits or comes later is answered with a failure.
 */
import { Worker } from "node:worker_threads"
import type { BlobUsage } from "#actors/blob-storage/blob-store.ts"
import type { Engine, EngineOptions } from "./blob-files-engine.ts"
import type { BlobFault } from "#actors/blob-storage/blob-fault.ts"
import type { Call, Reply, Started } from "./blob-files-protocol.ts"

/**
 * An answer or a fault, never a rejection: a call nobody awaits any more must not end the process.
 */
export type Answer<A> =
  | { readonly ok: true; readonly value: A }
  | { readonly ok: false; readonly fault: BlobFault }

/**
 * A worker that has not ended by itself this long after the store was shut is ended: DECISIONS
 * gives the whole process 10 s, of which requests may take 8; a crash loses nothing either.
 */
const shut_deadline_ms = 1500

const failed = (detail: string): BlobFault => ({ _tag: "BlobStoreFailed", detail })

/** Starts the worker and waits until its store is open. */
export const startThread = async (options: EngineOptions) => {
  const worker = new Worker(new URL("./blob-files-worker.ts", import.meta.url), {
    workerData: options,
    name: "blob-files",
  })
  const waiting = new Map<number, (answer: Answer<never>) => void>()
  let sequence = 0
  let death: string | undefined

  const die = (detail: string) => {
    death ??= detail
    for (const resolve of waiting.values()) resolve({ ok: false, fault: failed(death) })
    waiting.clear()
  }
  worker.on("error", (cause) => die(`The blob store's worker failed: ${cause}`))
  const exited = new Promise<void>((resolve) => {
    worker.on("exit", () => {
      die("The blob store's worker has ended.")
      resolve()
    })
  })
  const started = await new Promise<Started>((resolve) => {
    worker.once("message", resolve)
    void exited.then(() => resolve({ ok: false, fault: failed(death ?? "") }))
  })
  if (!started.ok) return { ok: false, fault: started.fault } as const

  worker.on("message", (reply: Reply) => {
    const resolve = waiting.get(reply.sequence)
    waiting.delete(reply.sequence)
    // The call that got this sequence number names the method, whose type its caller was given.
    resolve?.(reply as Answer<never>)
  })
  const call = <Method extends keyof Engine>(
    method: Method,
    parameters: Parameters<Engine[Method]>,
    transfer: ReadonlyArray<ArrayBuffer> = [],
  ): Promise<Answer<Awaited<ReturnType<Engine[Method]>>>> => {
    if (death !== undefined) return Promise.resolve({ ok: false, fault: failed(death) })
    return new Promise((resolve) => {
      sequence += 1
      waiting.set(sequence, resolve)
      worker.postMessage({ sequence, method, parameters } satisfies Call, transfer)
    })
  }
  const shut = async () => {
    const timer = setTimeout(() => void worker.terminate(), shut_deadline_ms)
    await call("shut", [])
    await exited
    clearTimeout(timer)
  }
  const usage: BlobUsage = started.usage
  return { ok: true, value: { worker, call, shut, usage, death: () => death } } as const
}
export type Thread = Extract<Awaited<ReturnType<typeof startThread>>, { ok: true }>["value"]
