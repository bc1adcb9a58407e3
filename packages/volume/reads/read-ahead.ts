/**
 * Reads whole blobs of a few MiB ahead: all bytes are read, and compared with the blob's hash,
 * before the first is returned. That saves the checksums of the chunks, a quarter of the processor
 * time of such a read. Larger blobs, and more of them than memory should hold, are verified chunk
 * by chunk.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { checksumOf, heldBytesOf, type RecordHead } from "../log/record.ts"
import { namesHash } from "./copies.ts"
import { type BlobSpan, windowsIn } from "./windows.ts"

/** Maximum size of such a blob, in bytes. */
const blob_bytes_max = 16 * 1024 * 1024

/** Maximum bytes of such blobs in memory at once. */
const held_bytes_max = 64 * 1024 * 1024

/** A blob, and a way to read it without comparing checksums. */
interface Source {
  readonly head: RecordHead
  readonly readUnverified: (window: BlobSpan) => Promise<Uint8Array>
}

const no_bytes: Uint8Array = new Uint8Array(0)

/**
 * All windows of a whole blob, verified by its hash alone. `first` may have been read already.
 * Undefined if the hash does not match or is unknown: then the checksums show which window is
 * wrong.
 */
export const readByHash = async ({ head, readUnverified }: Source, first = no_bytes) => {
  if (!namesHash(head)) return undefined
  const spans = windowsIn({ start: first.length, end: heldBytesOf(head) })
  const hasher = new Blake3Hasher()
  const all: Array<Uint8Array> = []
  const begin = () => {
    const { value, done } = spans.next()
    return done ? undefined : readUnverified(value)
  }
  const take = (bytes: Uint8Array) => {
    hasher.update(bytes)
    if (bytes.length > 0) all.push(bytes)
  }
  let reading = begin()
  // The system reads the next window while this one is hashed.
  take(first)
  while (reading) {
    const bytes = await reading
    reading = begin()
    take(bytes)
  }
  return hasher.digest("base64") === checksumOf(head) ? all : undefined
}

/**
 * Yields all windows of a blob and returns true; false if there is no memory for it, or no hash.
 */
export const makeReadAhead = () => {
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
export type ReadAhead = ReturnType<typeof makeReadAhead>
