/**
 * The blob engine as a thread has it that answers requests: every question goes to the process's
 * own thread, where the engine is.
 *
 * Source: decision 0168.
 */
import type { MessagePort } from "node:worker_threads"
import type {
  BlobEngine,
  BlobReading,
  BlobUpload,
  PutAnswer,
} from "#actors/blob-storage/blobs/engine.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { Pin } from "#volume"
import { type Answered, type Asked, batches, type EngineCall, type Told } from "./message.ts"

export type RemoteEngine = Pick<BlobEngine, "put" | "upload" | "get" | "stat" | "delete"> & {
  /** Nodes of the cluster that are active. */
  readonly activeNodes: () => Promise<number>
  readonly pin: (...pinned: Parameters<Pin>) => Promise<(() => void) | undefined>
}

/** Asks, and resolves with what is told, and the bytes beside it. */
const asker = (port: MessagePort) => {
  const waiting = new Map<number, PromiseWithResolvers<Answered>>()
  const { add, carry } = batches<Asked>(port)
  let number = 0
  port.on("message", (told: ReadonlyArray<Told>) => {
    for (const one of told) {
      const asked = waiting.get(one.number)
      waiting.delete(one.number)
      if ("fault" in one) asked?.reject(thrown(one.fault))
      else asked?.resolve(one)
    }
  })
  return (call: EngineCall, parts?: ReadonlyArray<Uint8Array>) => {
    number += 1
    if (parts === undefined) add({ number, call })
    else carry({ number, call }, parts)
    const asked = Promise.withResolvers<Answered>()
    waiting.set(number, asked)
    return asked.promise
  }
}
type Ask = ReturnType<typeof asker>

/** The answer alone. */
const answerTo = async <A>(told: Promise<Answered>): Promise<A> => {
  const { answer } = await told
  // What the desk answers to that question (engine-desk.ts).
  return answer as A
}

/** Bytes of an upload that may be under way before the next piece waits. */
const written_bytes_max = 2 * 1024 * 1024

const makeUpload = (ask: Ask, flow: number, begin: EngineCall & { ask: "upload" }): BlobUpload => {
  let under_way = 0
  let failed: unknown
  let waiting: PromiseWithResolvers<void> | undefined
  const fail = (cause: unknown) => {
    failed ??= cause
    waiting?.reject(cause)
    waiting = undefined
  }
  ask(begin).catch(fail)
  return {
    write: (bytes) => {
      if (failed !== undefined) throw failed
      const { length } = bytes
      under_way += length
      ask({ ask: "write", flow }, [bytes]).then(() => {
        under_way -= length
        if (under_way >= written_bytes_max) return
        waiting?.resolve()
        waiting = undefined
      }, fail)
      if (under_way < written_bytes_max) return undefined
      waiting ??= Promise.withResolvers()
      return waiting.promise
    },
    finish: (at) => answerTo<PutAnswer>(ask({ ask: "finish", flow, order: begin.order, at })),
    abort: () => answerTo<void>(ask({ ask: "abort", flow })),
  }
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  if (data.length > 0) yield data
}

/** The windows of a flow: the next one is asked for while the last one is sent. */
async function* windowsOf(ask: Ask, flow: number): AsyncGenerator<Uint8Array> {
  const next = () => {
    const coming = ask({ ask: "next", flow })
    // It is awaited below, or its reader has left.
    coming.catch(() => undefined)
    return coming
  }
  let coming = next()
  try {
    for (let { bytes } = await coming; bytes !== undefined; { bytes } = await coming) {
      coming = next()
      yield bytes
    }
  } finally {
    await ask({ ask: "close", flow })
  }
}

/** The engine behind this port. */
export const remoteEngine = (port: MessagePort): RemoteEngine => {
  const ask = asker(port)
  let flows = 0
  return {
    put: (order, parts, at) => answerTo<PutAnswer>(ask({ ask: "put", order, at }, parts)),
    upload: (order, size) => {
      flows += 1
      return makeUpload(ask, flows, { ask: "upload", flow: flows, order, size })
    },
    get: async (id, range, at): Promise<BlobReading> => {
      const open = () => {
        flows += 1
        const flow = flows
        return { flow, told: ask({ ask: "get", flow, id, range, at }) }
      }
      const { flow, told } = open()
      const meta = await answerTo<BlobMeta>(told)
      const { bytes: data } = await told
      if (data !== undefined) return { meta, data, windows: () => once(data) }
      let is_taken = false
      const take = () => {
        if (is_taken) return false
        is_taken = true
        return true
      }
      // Nobody is told of windows that nobody asks for: they are looked for at once, or never.
      setImmediate(() => {
        if (take()) ask({ ask: "close", flow }).catch(() => undefined)
      })
      async function* again(): AsyncGenerator<Uint8Array> {
        const next = open()
        const { bytes } = await next.told
        yield* bytes === undefined ? windowsOf(ask, next.flow) : once(bytes)
      }
      return { meta, data, windows: () => (take() ? windowsOf(ask, flow) : again()) }
    },
    stat: (id, scope) => answerTo<BlobMeta>(ask({ ask: "stat", id, scope })),
    delete: (id, origin, at, scope) =>
      answerTo<void>(ask({ ask: "delete", id, origin, at, scope })),
    pin: async (id, place, extents) => {
      flows += 1
      const flow = flows
      const is_pinned = await answerTo<boolean>(ask({ ask: "pin", flow, id, place, extents }))
      if (!is_pinned) return undefined
      return () => void ask({ ask: "unpin", flow })
    },
    activeNodes: () => answerTo<number>(ask({ ask: "active" })),
  }
}
