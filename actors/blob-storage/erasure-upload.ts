/**
 * Erasure coded blobs whose bytes come piece by piece: gathered in memory where they are few, and
 * else on this node's disk, since a blob has no name before its last byte.
 *
 * Source: document 1 §4 PutStream; decision 0124.
 */
import type { PutOrder } from "./blob-engine.ts"
import type { ErasureParts } from "./erasure-layout.ts"
import { type ErasurePut, putErasure } from "./erasure-put.ts"
import type { Staging } from "./node-engine.ts"

/** Bytes of one blob that are gathered: a JSON body may have as many. */
const gathered_bytes_max = 64 * 1024 * 1024
/** Bytes that all uploads together may have gathered. */
const all_gathered_bytes_max = 256 * 1024 * 1024

/** As BlobUpload, but for what `finish` answers. */
export interface ErasureUpload {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly finish: (at: bigint) => Promise<ErasurePut>
  readonly abort: () => Promise<void>
}

/** Uploads of one node; `size` is what is announced, where it is. */
export const erasureUploads = (parts: ErasureParts) => {
  let all_gathered_bytes = 0

  return (order: PutOrder, size: number | undefined): ErasureUpload => {
    const hash = parts.hasher()
    let gathered: Array<Uint8Array> = []
    let gathered_bytes = 0
    let staging: Staging | undefined
    let moving: Promise<void> | undefined

    const giveBack = () => {
      all_gathered_bytes -= gathered_bytes
      gathered_bytes = 0
      gathered = []
    }
    const hasRoom = (bytes: number) =>
      Math.max(size ?? 0, gathered_bytes + bytes) <= gathered_bytes_max &&
      all_gathered_bytes + bytes <= all_gathered_bytes_max
    /** Goes over to the disk with all that has come. */
    const stage = async (bytes: Uint8Array) => {
      const made = parts.local.stage(size)
      staging = made
      const all = [...gathered, bytes]
      giveBack()
      for (const part of all) await made.write(part)
    }
    const write = (bytes: Uint8Array) => {
      if (staging) return staging.write(bytes)
      if (!hasRoom(bytes.length)) {
        moving = stage(bytes)
        return moving
      }
      hash.update(bytes)
      gathered.push(bytes)
      gathered_bytes += bytes.length
      all_gathered_bytes += bytes.length
      return undefined
    }
    return {
      write,
      finish: async (at) => {
        await moving
        const source = staging ? await staging.seal() : { parts: gathered, checksum: hash.digest() }
        return putErasure(parts, order, source, at)
      },
      abort: async () => {
        giveBack()
        await moving?.catch(() => undefined)
        await staging?.abort()
      },
    }
  }
}
