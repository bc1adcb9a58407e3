/** The engine of a store, so that the direct routes and the API of a test share one store. */
import { Cause, Effect, Exit, Option, Queue, Stream } from "effect"
import type { PutAnswer, PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import { type BlobFault, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobPut, OpenBlob } from "#actors/blob-storage/blobs/store.ts"
import type { DirectBlobs } from "#gateway/blob-storage/direct/routes.ts"
import { get_chunk_bytes_max } from "#schemas/blob-storage/blob.ts"
import type { Store } from "./blob-service.ts"

/** Runs it; its error is thrown as the fault that it is. */
const asked = async <A>(effect: Effect.Effect<A, BlobFault>) => {
  const exit = await Effect.runPromiseExit(effect)
  if (Exit.isSuccess(exit)) return exit.value
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  throw error === undefined ? Cause.squash(exit.cause) : thrown(error)
}

/** Looked at when the bytes have ended, as the engine's port has it. */
const putOf = (order: PutOrder): BlobPut => ({
  get labels() {
    return order.labels
  },
  get policy() {
    return order.policy
  },
  origin: order.origin,
  if_none_match: order.if_none_match,
  ...(order.expected_id === undefined ? {} : { expected_id: order.expected_id }),
})

const abandoned = { _tag: "BlobStoreFailed", detail: "abandoned" } as const

/** An upload whose pieces a put of the store takes, one at a time. */
const uploadTo = (store: Store, order: PutOrder) => {
  const queue = Effect.runSync(Queue.bounded<Uint8Array, BlobFault | Cause.Done>(1))
  const put = asked(store.put(putOf(order), Stream.fromQueue(queue)))
  put.catch(() => Effect.runSync(Queue.shutdown(queue)))
  return {
    write: async (bytes: Uint8Array) => {
      const is_taken = await Effect.runPromise(Queue.offer(queue, bytes))
      if (!is_taken) await put
    },
    finish: async (): Promise<PutAnswer> => {
      await Effect.runPromise(Queue.end(queue))
      return put
    },
    abort: async () => {
      await Effect.runPromise(Queue.fail(queue, abandoned))
      await put.catch(() => undefined)
    },
  }
}

/** The engine of this store. It has no journal, which no route asks for. */
export const engineOf = (store: Store): DirectBlobs["engine"] => ({
  put: (order, parts) => asked(store.put(putOf(order), Stream.fromIterable(parts))),
  upload: (order) => uploadTo(store, order),
  get: async (id, range) => {
    const { meta, bytes } = await asked(store.get(id, range))
    const length = Math.min(range.length ?? Number(meta.size), Number(meta.size))
    const windows = windowsOf(bytes)
    if (length > get_chunk_bytes_max) return { meta, data: undefined, windows }
    const parts = await asked(Stream.runCollect(bytes))
    return { meta, data: Buffer.concat(parts), windows }
  },
  stat: (id) => asked(store.stat(id)),
  delete: async (id, origin) => {
    await asked(store.delete(id, origin))
  },
})

const windowsOf = (bytes: OpenBlob["bytes"]) =>
  async function* () {
    // An error of the store is thrown as the fault that it is.
    const faults = Stream.catchCause(bytes, (cause) => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      return Stream.die(error === undefined ? Cause.squash(cause) : thrown(error))
    })
    for await (const window of Stream.toAsyncIterable(faults)) yield window
  }
