/**
 * Uploads of erasure coded blobs. Small uploads are buffered in memory; large ones are staged on
 * this node's disk, because the blob's id is known only after its last byte.
 *
 * Source: document 1 §4 PutStream; decision 0124.
 */
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import type { Staging } from "#actors/blob-storage/ports/node-engine.ts"
import { type ErasureParts, piece_bytes } from "./layout.ts"
import { type ErasurePut, putErasure } from "./put.ts"

/** Maximum buffered bytes of one upload; a JSON body may be as large. */
const buffered_bytes_max = 64 * 1024 * 1024
/** Maximum buffer memory of all uploads together. */
const all_buffered_bytes_max = 256 * 1024 * 1024

/** Buffer memory for this many bytes: whole pieces. */
const memoryFor = (bytes: number) => piece_bytes * Math.ceil(bytes / piece_bytes)

/** Like BlobUpload, with another result of `finish`. */
export interface ErasureUpload {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly finish: (at: bigint) => Promise<ErasurePut>
  readonly abort: () => Promise<void>
}

/**
 * Collects bytes in pooled pieces and hashes whole pieces. Uploads arrive in parts of about 64 KiB
 * at arbitrary offsets, which BLAKE3 hashes at half the speed.
 */
const makeBuffer = ({ pool, hasher }: ErasureParts) => {
  const hash = hasher()
  let pieces: Array<Uint8Array> = []
  let piece: Uint8Array | undefined
  let used = 0

  const close = () => {
    if (piece === undefined) return
    const full = piece.subarray(0, used)
    hash.update(full)
    pieces.push(full)
    piece = undefined
    used = 0
  }
  /** Takes the collected pieces; the caller owns them from now on. */
  const take = () => {
    close()
    const taken = pieces
    pieces = []
    return taken
  }
  return {
    push: (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length; ) {
        piece ??= pool.acquire()
        const part = bytes.subarray(at, at + piece_bytes - used)
        piece.set(part, used)
        at += part.length
        used += part.length
        if (used === piece_bytes) close()
      }
    },
    take,
    end: () => ({ parts: take(), checksum: hash.digest() }),
    giveBack: pool.release,
  }
}

/** Creates the uploads of one node; `size` is the announced size, if any. */
export const erasureUploads = (parts: ErasureParts) => {
  let all_buffered_bytes = 0

  return (order: PutOrder, size: number | undefined): ErasureUpload => {
    const buffer = makeBuffer(parts)
    let buffered_bytes = 0
    let staging: Staging | undefined
    let move: Promise<void> | undefined

    const giveBack = () => {
      all_buffered_bytes -= memoryFor(buffered_bytes)
      buffered_bytes = 0
    }
    const growth = (bytes: number) => memoryFor(buffered_bytes + bytes) - memoryFor(buffered_bytes)
    const hasRoom = (bytes: number) =>
      Math.max(size ?? 0, buffered_bytes + bytes) <= buffered_bytes_max &&
      all_buffered_bytes + growth(bytes) <= all_buffered_bytes_max
    /** Moves everything that has arrived to the disk. */
    const stage = async (bytes: Uint8Array) => {
      const made = parts.local.stage(size)
      staging = made
      const all = [...buffer.take(), bytes]
      giveBack()
      for (const part of all) await made.write(part)
    }
    const write = (bytes: Uint8Array) => {
      if (staging) return staging.write(bytes)
      if (!hasRoom(bytes.length)) {
        move = stage(bytes)
        return move
      }
      all_buffered_bytes += growth(bytes.length)
      buffer.push(bytes)
      buffered_bytes += bytes.length
      return undefined
    }
    return {
      write,
      finish: async (at) => {
        // Takes the memory before any await, so that a later `abort` leaves it alone.
        if (move) await move
        if (staging) return putErasure(parts, order, await staging.seal(), at)
        const source = buffer.end()
        const put = await putErasure(parts, order, source, at)
        if (put.is_source_free) buffer.giveBack(source.parts)
        return put
      },
      abort: async () => {
        giveBack()
        buffer.giveBack(buffer.take())
        await move?.catch(() => undefined)
        await staging?.abort()
      },
    }
  }
}
