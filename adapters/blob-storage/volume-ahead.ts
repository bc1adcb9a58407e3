/**
 * Whole blobs of a few MiB that are read ahead of their reader: all of the bytes are here, and
 * compared with the blob's hash, before the first is handed on. So no checksum of a chunk needs to
 * be, which is a quarter of the processor's time of such a read. Larger ones, and more of them at
 * once than memory should hold, are verified chunk by chunk as they go.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { namesHash } from "./volume-copies.ts"
import { checksumOf, heldBytesOf, type RecordHead } from "./volume-record.ts"
import { type BlobStretch, windowsIn } from "./volume-windows.ts"

/** The largest blob that is read so, in bytes. */
const blob_bytes_max = 16 * 1024 * 1024

/** Bytes of such blobs that are here at once, read and not all handed on. */
const held_bytes_max = 64 * 1024 * 1024

/** What is read, and how, without comparing it with its checksums. */
interface Source {
  readonly head: RecordHead
  readonly readToHash: (window: BlobStretch) => Promise<Uint8Array>
}

/** All windows of a blob, `first` among them; undefined where they do not have its hash. */
const readAll = async ({ head, readToHash }: Source, first: Uint8Array) => {
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

/**
 * Hands on all windows of a blob and answers true; false where it hands on none: there is no room,
 * or the bytes do not have the hash, and which of them are wrong is for others to find.
 */
export const makeAhead = () => {
  let held_bytes = 0
  return async function* (source: Source, first: Uint8Array): AsyncGenerator<Uint8Array, boolean> {
    const bytes = heldBytesOf(source.head)
    if (bytes > blob_bytes_max || held_bytes + bytes > held_bytes_max) return false
    if (!namesHash(source.head)) return false
    held_bytes += bytes
    try {
      const all = await readAll(source, first)
      if (!all) return false
      yield* all
      return true
    } finally {
      held_bytes -= bytes
    }
  }
}
export type Ahead = ReturnType<typeof makeAhead>
