/**
 * Reads of the plain blob store, and what becomes of a copy that fails them.
 */
import { store_origin } from "#actors/blob-storage/blob-admission.ts"
import type { BlobRange } from "#actors/blob-storage/blob-store.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { Line } from "./blob-files-commit.ts"
import type { Disk } from "./blob-files-disk.ts"
import { codeOf, faultOf, thrown } from "#actors/blob-storage/blob-fault.ts"
import { type BlobIndex, type IndexedBlob, metaOf } from "./blob-files-index.ts"
import { fitsOneWindow, openReader, type Reader, stretchOf } from "./blob-files-reader.ts"
import type { Places } from "./blob-files-recovery.ts"

/** A range's bytes where they fit one window; otherwise they have to be read by a handle. */
export interface FirstRead {
  readonly meta: BlobMeta
  readonly data: Uint8Array | undefined
}

export interface ReadPlace {
  readonly disk: Disk
  readonly index: BlobIndex
  readonly line: Line
  readonly places: Places
}

/** Opening blobs, with what is found corrupt or missing set aside before that is answered. */
const makeOpening = ({ disk, places, index, line }: ReadPlace) => {
  /** Copies found corrupt after the index became read-only: unseen until the next start. */
  const hidden = new Set<BlobId>()

  const find = (id: BlobId) => {
    const blob = hidden.has(id) ? undefined : index.find(id)
    if (!blob) throw thrown({ _tag: "BlobNotFound", id })
    return blob
  }
  const setAside = async (
    kind: "quarantined" | "lost",
    { id, created_at }: IndexedBlob,
    { detail, at }: { readonly detail: string; readonly at: bigint },
  ) => {
    if (line.failed() !== undefined) hidden.add(id)
    else await line.submit({ kind, id, created_at, detail, at, origin: store_origin })
  }
  const guarded = async <A>(blob: IndexedBlob, at: bigint, work: () => Promise<A>): Promise<A> => {
    try {
      return await work()
    } catch (cause) {
      const fault = faultOf(cause)
      if (fault._tag === "BlobCorrupt") {
        await setAside("quarantined", blob, { detail: fault.detail, at })
      }
      throw cause
    }
  }
  /** Opens what the index has now: a delete, or a delete and a put, may overtake the opening. */
  const openNow = async (id: BlobId, range: BlobRange, at: bigint): Promise<Reader> => {
    const blob = find(id)
    const stretch = stretchOf(blob.size, range.offset, range.length)
    try {
      return await guarded(blob, at, () => openReader(disk, places.blob(id), blob, stretch))
    } catch (cause) {
      if (codeOf(cause) !== "ENOENT") throw cause
      if (index.find(id)?.created_at !== blob.created_at) return openNow(id, range, at)
      await setAside("lost", blob, { detail: "The file was gone when it was read.", at })
      throw thrown({ _tag: "BlobCorrupt", id, detail: "The blob's file is gone." })
    }
  }
  return { find, guarded, openNow }
}

/** The engine's reads: `get` for what fits one window, `open`, `read` and `close` for the rest. */
export const makeReads = (place: ReadPlace) => {
  const { find, guarded, openNow } = makeOpening(place)
  const readers = new Map<number, { readonly reader: Reader; readonly at: bigint }>()

  const get = async (id: BlobId, range: BlobRange, at: bigint): Promise<FirstRead> => {
    const reader = await openNow(id, range, at)
    const { blob } = reader
    try {
      const first = await guarded(blob, at, reader.next)
      const stretch = stretchOf(blob.size, range.offset, range.length)
      const data = fitsOneWindow(stretch) ? (first ?? new Uint8Array(0)) : undefined
      return { meta: metaOf(blob), data }
    } finally {
      await reader.close()
    }
  }
  const close = async (key: number) => {
    const opened = readers.get(key)
    readers.delete(key)
    await opened?.reader.close()
  }
  return {
    get,
    stat: async (id: BlobId) => metaOf(find(id)),
    open: async (key: number, id: BlobId, range: BlobRange, at: bigint) => {
      readers.set(key, { reader: await openNow(id, range, at), at })
    },
    read: async (key: number): Promise<Uint8Array | undefined> => {
      const opened = readers.get(key)
      if (!opened) throw new Error(`there is no reader ${key}`)
      return guarded(opened.reader.blob, opened.at, opened.reader.next)
    },
    close,
    closeAll: async () => {
      await Promise.all(Array.from(readers.keys(), close))
    },
  }
}
