/**
 * A blob on its way in: a file under `incoming/` that nobody sees until it is complete, synced and
 * renamed. What a crash leaves there is removed at the next start.
 */
import type { FileHandle } from "node:fs/promises"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Disk } from "./blob-files-disk.ts"
import { isFull, thrown } from "#actors/blob-storage/blob-fault.ts"
import { chunk_bytes, encodeFooter, type Footer, tableOf } from "./blob-files-format.ts"

/** What the bytes turned out to be, before they are durable. */
export interface Identified extends Footer {
  readonly id: BlobId
}

/** Sixteen bytes: document 1 §2 BlobID, as hex characters. */
const id_characters = 32

const identified = (hasher: Blake3Hasher, size: number): Identified => {
  const digest = hasher.digestBuffer()
  // The first half of a BLAKE3 digest in hex is what the brand says.
  const id = digest.toString("hex").slice(0, id_characters) as BlobId
  return { id, checksum: digest.toString("base64"), size }
}

/** The identity of bytes that are all there. */
export const identify = (bytes: Uint8Array) =>
  identified(new Blake3Hasher().update(bytes), bytes.length)

/** A table of CRCs that doubles as it grows: 80 bytes for each MiB of blob, 400 MiB at 5 TiB. */
const growingTable = () => {
  let table = Buffer.alloc(1024)
  let used = 0
  return {
    append: (entries: Buffer) => {
      if (used + entries.length > table.length) {
        const larger = Buffer.alloc(Math.max(2 * table.length, used + entries.length))
        table.copy(larger, 0, 0, used)
        table = larger
      }
      used += entries.copy(table, used)
    },
    bytes: () => table.subarray(0, used),
  }
}

/**
 * Opens a file to take a blob. All appended pieces but the last must be whole chunks of 64 KiB; the
 * calls must not overlap. `seal` makes the file durable, `discard` removes it at any point.
 */
export const stage = async (disk: Disk, path: string) => {
  const file: FileHandle = await disk.create(path)
  const hasher = new Blake3Hasher()
  const table = growingTable()
  let size = 0
  let open = true

  const close = async () => {
    if (!open) return
    open = false
    await file.close()
  }
  const append = async (bytes: Uint8Array) => {
    if (size % chunk_bytes !== 0) throw new Error("only the last piece may be a broken chunk")
    hasher.update(bytes)
    table.append(tableOf(bytes, size / chunk_bytes))
    const position = size
    size += bytes.length
    await disk.write(file, bytes, position)
  }
  const identity = () => identified(hasher, size)
  const seal = async (footer: Footer) => {
    const tail = Buffer.concat([table.bytes(), encodeFooter(footer)])
    await disk.write(file, tail, size)
    try {
      await disk.syncFile(file)
    } catch (cause) {
      if (isFull(cause)) throw cause
      throw thrown({ _tag: "BlobStoreReadOnly", detail: `A file's sync failed: ${cause}` })
    }
    await close()
  }
  const discard = async () => {
    await close()
    await disk.remove(path)
  }
  return { path, append, identity, seal, discard }
}
export type Staged = Awaited<ReturnType<typeof stage>>
