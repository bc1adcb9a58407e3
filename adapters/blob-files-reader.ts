/**
 * Reading one blob's file, a window at a time, with nothing handed on that was not verified.
 */
import type { FileHandle } from "node:fs/promises"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { Disk } from "./blob-files-disk.ts"
import { thrown } from "#actors/blob-storage/blob-fault.ts"
import {
  chunk_bytes,
  decodeFooter,
  fileBytes,
  footer_bytes,
  tableOf,
  tablePosition,
  window_bytes,
} from "./blob-files-format.ts"
import type { IndexedBlob } from "./blob-files-index.ts"

/** A stretch of a blob: from `start` to before `end`, both within its size. */
export interface Stretch {
  readonly start: number
  readonly end: number
}

/** The stretch that a range means: what lies past the end is left out. */
export const stretchOf = (size: number, offset = 0, length = size): Stretch => {
  const start = Math.min(Math.max(offset, 0), size)
  return { start, end: Math.min(start + Math.max(length, 0), size) }
}

/** The end of the window that begins at `start`: at a chunk's border or at the stretch's end. */
const windowEnd = ({ start, end }: Stretch) =>
  Math.min(Math.floor(start / chunk_bytes) * chunk_bytes + window_bytes, end)

export const fitsOneWindow = (stretch: Stretch) => windowEnd(stretch) === stretch.end

const corrupt = ({ id }: IndexedBlob, detail: string) => thrown({ _tag: "BlobCorrupt", id, detail })

const verifyFooter = async (disk: Disk, file: FileHandle, blob: IndexedBlob) => {
  const { size } = await file.stat()
  if (size !== fileBytes(blob.size)) throw corrupt(blob, `The file has ${size} bytes.`)
  const bytes = Buffer.alloc(footer_bytes)
  await disk.read(file, bytes, size - footer_bytes)
  const footer = decodeFooter(bytes)
  if (footer === undefined) throw corrupt(blob, "The footer is damaged.")
  if (footer.size !== blob.size || footer.checksum !== blob.checksum) {
    throw corrupt(blob, "The footer is that of another blob.")
  }
}

/** The whole chunks that cover a window, each equal to its CRC, or a corrupt fault. */
const verifiedChunks = async (
  disk: Disk,
  file: FileHandle,
  blob: IndexedBlob,
  { start, end }: Stretch,
) => {
  const first_chunk = Math.floor(start / chunk_bytes)
  const from = first_chunk * chunk_bytes
  const to = Math.min(Math.ceil(end / chunk_bytes) * chunk_bytes, blob.size)
  // An ArrayBuffer of its own, so that it can be transferred to another thread.
  const bytes = new Uint8Array(new ArrayBuffer(to - from))
  const expected = Buffer.alloc(4 * (Math.ceil(to / chunk_bytes) - first_chunk))
  const counts = await Promise.all([
    disk.read(file, bytes, from),
    disk.read(file, expected, tablePosition(blob.size, first_chunk)),
  ])
  if (counts[0] !== bytes.length || counts[1] !== expected.length) {
    throw corrupt(blob, "The file ends too early.")
  }
  if (!tableOf(bytes, first_chunk).equals(expected)) {
    throw corrupt(blob, `Bytes ${from} to ${to} do not match their checksums.`)
  }
  return bytes.subarray(start - from, end - from)
}

/**
 * Opens a blob's file for a stretch of it. `next` answers its windows in order, undefined at the
 * end; a stretch that is the whole blob is compared with the blob's hash before its last window
 * leaves.
 */
export const openReader = async (disk: Disk, path: string, blob: IndexedBlob, stretch: Stretch) => {
  const file = await disk.open(path)
  try {
    await verifyFooter(disk, file, blob)
  } catch (cause) {
    await file.close()
    throw cause
  }
  const whole = stretch.start === 0 && stretch.end === blob.size
  const hasher = whole ? new Blake3Hasher() : undefined
  let { start } = stretch
  let fresh = true

  const next = async () => {
    if (start >= stretch.end && !(fresh && whole)) return undefined
    fresh = false
    const window = { start, end: windowEnd({ start, end: stretch.end }) }
    const bytes = await verifiedChunks(disk, file, blob, window)
    hasher?.update(bytes)
    start = window.end
    if (start === stretch.end && hasher && hasher.digest("base64") !== blob.checksum) {
      throw corrupt(blob, "The bytes do not match the blob's checksum.")
    }
    return bytes.length === 0 ? undefined : bytes
  }
  return { blob, next, close: () => file.close() }
}
export type Reader = Awaited<ReturnType<typeof openReader>>
