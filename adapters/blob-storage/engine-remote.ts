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
} from "#actors/blob-storage/blob-engine.ts"
import { thrown } from "#actors/blob-storage/blob-fault.ts"
import type { BlobMeta } from "#schemas/blob-storage/blob.ts"
import {
  type Asked,
  batches,
  type EngineCall,
  no_bytes,
  type ReadingTold,
  type Told,
} from "./engine-message.ts"
import type { Pin } from "./volume-reads.ts"

export type RemoteEngine = Pick<BlobEngine, "put" | "upload" | "get" | "stat" | "delete"> & {
  /** Nodes of the cluster that are active. */
  readonly activeNodes: () => Promise<number>
  readonly pin: (...pinned: Parameters<Pin>) => Promise<(() => void) | undefined>
}

/** Asks, and resolves with what is told. */
const asker = (port: MessagePort) => {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const post = batches<Asked>(port)
  let number = 0
  port.on("message", (told: ReadonlyArray<Told>) => {
    for (const one of told) {
      const asked = waiting.get(one.number)
      waiting.delete(one.number)
      if ("fault" in one) asked?.reject(thrown(one.fault))
      else asked?.resolve(one.answer)
    }
  })
  return <A>(call: EngineCall, parts: ReadonlyArray<Uint8Array> = []): Promise<A> => {
    number += 1
    post({ number, call }, "bytes" in call ? call : undefined, parts)
    const asked = Promise.withResolvers<unknown>()
    waiting.set(number, asked)
    // What the desk answers to each question (engine-desk.ts).
    return asked.promise as Promise<A>
  }
}
type Ask = ReturnType<typeof asker>

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
      ask({ ask: "write", flow, bytes: no_bytes }, [bytes]).then(() => {
        under_way -= length
        if (under_way >= written_bytes_max) return
        waiting?.resolve()
        waiting = undefined
      }, fail)
      if (under_way < written_bytes_max) return undefined
      waiting ??= Promise.withResolvers()
      return waiting.promise
    },
    finish: (at) => ask<PutAnswer>({ ask: "finish", flow, order: begin.order, at }),
    abort: () => ask<void>({ ask: "abort", flow }),
  }
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  if (data.length > 0) yield data
}

/** The windows of a flow: the next one is asked for while the last one is sent. */
async function* windowsOf(ask: Ask, flow: number): AsyncGenerator<Uint8Array> {
  const next = () => {
    const coming = ask<{ readonly bytes: Uint8Array } | undefined>({ ask: "next", flow })
    // It is awaited below, or its reader has left.
    coming.catch(() => undefined)
    return coming
  }
  let coming = next()
  try {
    for (let window = await coming; window !== undefined; window = await coming) {
      coming = next()
      yield window.bytes
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
    put: (order, parts, at) => ask<PutAnswer>({ ask: "put", order, bytes: no_bytes, at }, parts),
    upload: (order, size) => {
      flows += 1
      return makeUpload(ask, flows, { ask: "upload", flow: flows, order, size })
    },
    get: async (id, range, at): Promise<BlobReading> => {
      const open = () => {
        flows += 1
        const flow = flows
        return { flow, told: ask<ReadingTold>({ ask: "get", flow, id, range, at }) }
      }
      const { flow, told } = open()
      const { meta, is_whole, bytes } = await told
      if (is_whole) return { meta, data: bytes, windows: () => once(bytes) }
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
        const { is_whole, bytes } = await next.told
        yield* is_whole ? once(bytes) : windowsOf(ask, next.flow)
      }
      return { meta, data: undefined, windows: () => (take() ? windowsOf(ask, flow) : again()) }
    },
    stat: (id, scope) => ask<BlobMeta>({ ask: "stat", id, scope }),
    delete: (id, origin, at, scope) => ask<void>({ ask: "delete", id, origin, at, scope }),
    pin: async (id, place, extents) => {
      flows += 1
      const flow = flows
      if (!(await ask<boolean>({ ask: "pin", flow, id, place, extents }))) return undefined
      return () => void ask({ ask: "unpin", flow })
    },
    activeNodes: () => ask<number>({ ask: "active" }),
  }
}
