/**
 * Erasure coded blobs whose bytes come piece by piece: gathered in memory where they are few, and
 * else on this node's disk, since a blob has no name before its last byte.
 *
 * Source: document 1 §4 PutStream; decision 0124.
 */
import type { PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import type { Staging } from "#actors/blob-storage/node-engine.ts"
import { type ErasureParts, piece_bytes } from "./layout.ts"
import { type ErasurePut, putErasure } from "./put.ts"

/** Bytes of one blob that are gathered: a JSON body may have as many. */
const gathered_bytes_max = 64 * 1024 * 1024
/** Bytes of the pieces that all uploads together may have taken. */
const all_gathered_bytes_max = 256 * 1024 * 1024

/** Memory that is taken for so many bytes: one byte takes a piece. */
const takenFor = (bytes: number) => piece_bytes * Math.ceil(bytes / piece_bytes)

/** As BlobUpload, but for what `finish` answers. */
export interface ErasureUpload {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly finish: (at: bigint) => Promise<ErasurePut>
  readonly abort: () => Promise<void>
}

/**
 * Bytes gathered in pieces, and hashed a piece at a time: they come in parts of some 64 KiB that
 * begin anywhere, and of such BLAKE3 hashes half as many in a second.
 */
const gather = ({ memory, hasher }: ErasureParts) => {
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
  /** All that has come: it is whoever asks for it that has it now. */
  const take = () => {
    close()
    const taken = pieces
    pieces = []
    return taken
  }
  return {
    push: (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length; ) {
        piece ??= memory.take()
        const part = bytes.subarray(at, at + piece_bytes - used)
        piece.set(part, used)
        at += part.length
        used += part.length
        if (used === piece_bytes) close()
      }
    },
    take,
    end: () => ({ parts: take(), checksum: hash.digest() }),
    giveBack: memory.giveBack,
  }
}

/** Uploads of one node; `size` is what is announced, where it is. */
export const erasureUploads = (parts: ErasureParts) => {
  let all_gathered_bytes = 0

  return (order: PutOrder, size: number | undefined): ErasureUpload => {
    const gathering = gather(parts)
    let gathered_bytes = 0
    let staging: Staging | undefined
    let moving: Promise<void> | undefined

    const giveBack = () => {
      all_gathered_bytes -= takenFor(gathered_bytes)
      gathered_bytes = 0
    }
    const growth = (bytes: number) => takenFor(gathered_bytes + bytes) - takenFor(gathered_bytes)
    const hasRoom = (bytes: number) =>
      Math.max(size ?? 0, gathered_bytes + bytes) <= gathered_bytes_max &&
      all_gathered_bytes + growth(bytes) <= all_gathered_bytes_max
    /** Goes over to the disk with all that has come. */
    const stage = async (bytes: Uint8Array) => {
      const made = parts.local.stage(size)
      staging = made
      const all = [...gathering.take(), bytes]
      giveBack()
      for (const part of all) await made.write(part)
    }
    const write = (bytes: Uint8Array) => {
      if (staging) return staging.write(bytes)
      if (!hasRoom(bytes.length)) {
        moving = stage(bytes)
        return moving
      }
      all_gathered_bytes += growth(bytes.length)
      gathering.push(bytes)
      gathered_bytes += bytes.length
      return undefined
    }
    return {
      write,
      finish: async (at) => {
        // What is in memory is taken at once: an `abort` from here on leaves it alone.
        if (moving) await moving
        if (staging) return putErasure(parts, order, await staging.seal(), at)
        const source = gathering.end()
        const put = await putErasure(parts, order, source, at)
        if (put.is_read_out) gathering.giveBack(source.parts)
        return put
      },
      abort: async () => {
        giveBack()
        gathering.giveBack(gathering.take())
        await moving?.catch(() => undefined)
        await staging?.abort()
      },
    }
  }
}
