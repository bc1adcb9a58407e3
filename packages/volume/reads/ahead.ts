/**
 * Whole blobs of a few MiB that are read ahead of their reader: all of the bytes are here, and
 * compared with the blob's hash, before the first is handed on. So no checksum of a chunk needs to
 * be, which is a quarter of the processor's time of such a read. Larger ones, and more of them at
 * once than memory should hold, are verified chunk by chunk as they go.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { checksumOf, heldBytesOf, type RecordHead } from "../log/record.ts"
import { namesHash } from "./copies.ts"
import { type BlobStretch, windowsIn } from "./windows.ts"

/** The largest blob that is read so, in bytes. */
const blob_bytes_max = 16 * 1024 * 1024

/** Bytes of such blobs that are here at once, read and not all handed on. */
const held_bytes_max = 64 * 1024 * 1024

/** What is read, and how, without comparing it with its checksums. */
interface Source {
  readonly head: RecordHead
  readonly readToHash: (window: BlobStretch) => Promise<Uint8Array>
}

const no_bytes: Uint8Array = new Uint8Array(0)

/**
 * All windows of a whole blob, by its hash alone. `first` may be here already. Undefined where they
 * do not have the hash, or none is known: which of them is wrong is for the checksums to say.
 */
export const readByHash = async ({ head, readToHash }: Source, first = no_bytes) => {
  if (!namesHash(head)) return undefined
  const spans = windowsIn({ start: first.length, end: heldBytesOf(head) })
  const hasher = new Blake3Hasher()
  const all: Array<Uint8Array> = []
  const begin = () => {
    const { value, done } = spans.next()
    return done ? undefined : readToHash(value)
  }
  const take = (bytes: Uint8Array) => {
    hasher.update(bytes)
    if (bytes.length > 0) all.push(bytes)
  }
  let reading = begin()
  // The system reads the next one while this one is hashed.
  take(first)
  while (reading) {
    const bytes = await reading
    reading = begin()
    take(bytes)
  }
  return hasher.digest("base64") === checksumOf(head) ? all : undefined
}

/** Hands on all windows of a blob and answers true; false where there is no room, or no hash. */
export const makeAhead = () => {
  let held_bytes = 0
  return async function* (source: Source, first: Uint8Array): AsyncGenerator<Uint8Array, boolean> {
    const bytes = heldBytesOf(source.head)
    if (bytes > blob_bytes_max || held_bytes + bytes > held_bytes_max) return false
    held_bytes += bytes
    try {
      const all = await readByHash(source, first)
      if (!all) return false
      yield* all
      return true
    } finally {
      held_bytes -= bytes
    }
  }
}
export type Ahead = ReturnType<typeof makeAhead>
