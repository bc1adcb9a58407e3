/**
 * The blob engine of a thread that answers requests: it reads what it finds by itself, and asks the
 * process's own thread for everything else, and whenever it is not sure.
 *
 * Source: decision 0168.
 */
import type { BlobEngine, BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import type { BlobRange } from "#actors/blob-storage/blobs/store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { SharedReads } from "#volume"
import type { RemoteEngine } from "./remote.ts"

export type ThreadEngine = Pick<BlobEngine, "put" | "upload" | "get" | "getNow" | "stat" | "delete">

export const threadEngine = (remote: RemoteEngine, reads: SharedReads): ThreadEngine => {
  const elsewhere = async (id: BlobId, range: BlobRange, at: bigint) => {
    const { data, windows } = await remote.get(id, range, at)
    return data === undefined ? windows() : [data]
  }
  /** What this thread cannot go on with it has from the other one, from there on. */
  async function* goneOn(
    { meta, windows }: BlobReading,
    { id, range, at }: { readonly id: BlobId; readonly range: BlobRange; readonly at: bigint },
  ): AsyncGenerator<Uint8Array, void> {
    const { offset = 0, length = Number(meta.size) } = range
    let given = 0
    try {
      for await (const window of windows()) {
        given += window.length
        yield window
      }
      return
    } catch {
      // The other thread says what is wrong, if anything is.
    }
    yield* await elsewhere(id, { offset: offset + given, length: length - given }, at)
  }
  const get: BlobEngine["get"] = async (id, range, at) => {
    let reading: BlobReading
    try {
      reading = await reads.get(id, range, at)
    } catch {
      return remote.get(id, range, at)
    }
    if (reading.data !== undefined) return reading
    return { ...reading, windows: () => goneOn(reading, { id, range, at }) }
  }
  return {
    put: remote.put,
    upload: remote.upload,
    delete: remote.delete,
    get,
    getNow: (id) => {
      try {
        return reads.getNow(id)
      } catch {
        return undefined
      }
    },
    stat: (id, scope) => reads.stat(id, 0n).catch(() => remote.stat(id, scope)),
  }
}
