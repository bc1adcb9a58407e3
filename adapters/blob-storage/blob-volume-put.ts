/**
 * A stream's bytes on their way into an engine: a small blob is gathered and put as one, a larger
 * one goes over to an upload. The bytes are copied: a producer may use its own array again.
 */
import type {
  BlobEngine,
  BlobUpload,
  PutAnswer,
  PutOrder,
} from "#actors/blob-storage/blobs/engine.ts"

const kib = 1024
/** A blob up to here is gathered; the volume keeps smaller ones in its log. */
const gathered_bytes_max = 256 * kib
/** What an upload is given at once, for which it writes and hashes it in one go. */
const piece_bytes = 1024 * kib
/** The first allocation for a blob that comes in small parts. */
const piece_bytes_first = 4 * kib

/** Bytes up to a bound, in one array that grows. */
const makePiece = () => {
  let bytes = new Uint8Array(0)
  let used = 0
  return {
    /** Takes what fits and answers how much that was. */
    take: (part: Uint8Array, bytes_max: number) => {
      const count = Math.min(part.length, bytes_max - used)
      if (used + count > bytes.length) {
        const wanted = used === 0 ? count : 2 * bytes.length
        const room = Math.max(used + count, wanted, piece_bytes_first)
        const larger = Buffer.allocUnsafeSlow(Math.min(room, bytes_max))
        larger.set(bytes.subarray(0, used))
        bytes = larger
      }
      bytes.set(part.subarray(0, count), used)
      used += count
      return count
    },
    size: () => used,
    /** Hands the bytes over and begins anew. */
    empty: () => {
      const full = bytes.subarray(0, used)
      bytes = new Uint8Array(0)
      used = 0
      return full
    },
  }
}

/**
 * One put by parts, of `bytes_max` bytes at most where that is known: `begin`, `write` each, then
 * `finish`, and `end` in any case. `write` answers a promise where the next part has to wait. What
 * they throw or reject with carries a BlobFault.
 */
export const makePut = (engine: BlobEngine, order: PutOrder, bytes_max?: number) => {
  const piece = makePiece()
  let upload: BlobUpload | undefined

  const roomOf = () => (upload === undefined ? gathered_bytes_max : piece_bytes)
  const send = () => {
    upload ??= engine.upload(order, bytes_max)
    return upload.write(piece.empty())
  }
  /** Takes the part from `from` on; waits by a promise, and only where the upload does. */
  const takeFrom = (part: Uint8Array, from: number): Promise<void> | undefined => {
    let taken = from
    while (taken < part.length) {
      if (piece.size() === roomOf()) {
        const waiting = send()
        if (waiting) return waiting.then(() => takeFrom(part, taken))
      }
      taken += piece.take(part.subarray(taken), roomOf())
    }
    return undefined
  }
  return {
    /** Takes room for much that is announced, or refuses it before it comes. */
    begin: () => ((bytes_max ?? 0) > gathered_bytes_max ? send() : undefined),
    write: (part: Uint8Array) => takeFrom(part, 0),
    /** Stores the blob durably; `at` is Unix nanoseconds. */
    finish: async (at: bigint): Promise<PutAnswer> => {
      if (upload === undefined) {
        return engine.put(order, piece.size() === 0 ? [] : [piece.empty()], at)
      }
      if (piece.size() > 0) await send()
      return upload.finish(at)
    },
    end: async () => upload?.abort(),
  }
}
