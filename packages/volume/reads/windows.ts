/**
 * Reads a large blob from its extents, a window at a time. Each chunk is verified by the extent's
 * table, and the table by the record, before anything is returned.
 */
import { crc32c } from "@node-rs/crc32"
import type { VolumeFile } from "../disk.ts"
import type { Extent } from "../log/record.ts"
import type { Segment, Segments } from "../parts.ts"
import { chunk_bytes, chunkCount, firstMismatch, tableBytes, window_bytes } from "./chunks.ts"
import { damaged } from "./damage.ts"

/** Maximum size of the tables in memory, in bytes: those of 64 GiB of blobs. */
const tables_bytes_max = 4 * 1024 * 1024

/** A span of a blob: from `start` to `end` (exclusive), both within its size. */
export interface BlobSpan {
  readonly start: number
  readonly end: number
}

/** The span of a range, cut at the blob's end. */
export const spanOf = (size: number, offset = 0, length = size): BlobSpan => {
  const start = Math.min(Math.max(offset, 0), size)
  return { start, end: Math.min(start + Math.max(length, 0), size) }
}

/** The end of the window that starts at `start`: a chunk boundary, or the end of the span. */
export const windowEnd = ({ start, end }: BlobSpan) =>
  Math.min(Math.floor(start / chunk_bytes) * chunk_bytes + window_bytes, end)

/** The windows of a span, in order. */
export function* windowsIn({ start, end }: BlobSpan): Generator<BlobSpan> {
  for (let at = start; at < end; ) {
    const window = { start: at, end: windowEnd({ start: at, end }) }
    yield window
    at = window.end
  }
}

/** The file to read a segment from: its own, or one that was opened again. */
export type FileOf = (segment: Segment) => VolumeFile | Promise<VolumeFile>

export const ownFile: FileOf = ({ file }) => file

/** Verified tables that were used recently, by their identity. */
const makeTables = () => {
  const tables = new Map<string, DataView>()
  let bytes = 0
  const keyOf = ({ file, position, table_crc, ...extent }: Extent) =>
    `${file} ${position} ${extent.bytes} ${table_crc}`
  const find = (extent: Extent) => {
    const key = keyOf(extent)
    const table = tables.get(key)
    if (!table) return undefined
    tables.delete(key)
    tables.set(key, table)
    return table
  }
  const add = (extent: Extent, table: DataView) => {
    tables.set(keyOf(extent), table)
    bytes += table.byteLength
    for (const [key, oldest] of tables) {
      if (bytes <= tables_bytes_max) break
      tables.delete(key)
      bytes -= oldest.byteLength
    }
  }
  return { find, add }
}

/** How a window is read. */
interface ReadMode {
  readonly fileOf: FileOf
  /** Whether the bytes are compared with their checksums. */
  readonly verifies: boolean
}

/** The part of a window that one extent holds. */
interface Piece {
  readonly extent: Extent
  /** Number of the extent's first chunk in the blob. */
  readonly extent_chunk: number
  /** Start of the piece in the extent and in the window's buffer, and its length. */
  readonly from: number
  readonly into: number
  readonly length: number
}

/** Maximum number of whole windows ready for reuse: those of 32 concurrent readers, 30 MiB. */
const spare_windows_max = 32

/**
 * Memory of whole windows, which nearly all reads of large blobs use: allocating each window would
 * cost the kernel its pages, and V8 a collection every few windows. Windows that are not returned
 * are garbage collected.
 */
const makeWindowMemory = () => {
  const spare: Array<Buffer> = []
  /** Keyed by the window itself, because another reader may own the same memory later. */
  const lent = new WeakMap<Uint8Array, Buffer>()
  return {
    take: (bytes: number): Buffer => {
      const free = bytes === window_bytes ? spare.pop() : undefined
      return free ?? Buffer.allocUnsafeSlow(bytes)
    },
    lend: (buffer: Buffer, from: number, to: number): Uint8Array => {
      const window = buffer.subarray(from, to)
      if (buffer.length === window_bytes) lent.set(window, buffer)
      return window
    },
    /** Ignores a window that was not lent, or was already returned. */
    giveBack: (window: Uint8Array) => {
      const buffer = lent.get(window)
      lent.delete(window)
      if (buffer && spare.length < spare_windows_max) spare.push(buffer)
    },
  }
}

/** The extents that hold the bytes from `start`, a chunk boundary, to `end`. */
const piecesOf = (extents: ReadonlyArray<Extent>, { start, end }: BlobSpan) => {
  const pieces: Array<Piece> = []
  let extent_start = 0
  for (const extent of extents) {
    const from = Math.max(start, extent_start)
    const to = Math.min(end, extent_start + extent.bytes)
    if (from < to) {
      const extent_chunk = extent_start / chunk_bytes
      const place = { from: from - extent_start, into: from - start, length: to - from }
      pieces.push({ extent, extent_chunk, ...place })
    }
    extent_start += extent.bytes
    if (extent_start >= end) break
  }
  return pieces
}

/**
 * Reads windows. Throws `damaged` if bytes are missing or are not those that were put. The caller
 * must pin extents that may be freed.
 */
export const makeWindows = (segments: Segments) => {
  const tables = makeTables()
  const memory = makeWindowMemory()

  const open = async ({ file }: Extent, fileOf: FileOf) => {
    const segment = segments.find("ext", file)
    if (!segment) throw damaged(`Extent file ${file} is missing.`, "lost")
    return fileOf(segment)
  }
  const tableOf = async (extent: Extent, fileOf: FileOf): Promise<DataView> => {
    const known = tables.find(extent)
    if (known) return known
    const file = await open(extent, fileOf)
    const length = tableBytes(extent.bytes)
    const bytes = await file.read(extent.position + extent.bytes, length)
    if (bytes.length !== length || crc32c(bytes) !== extent.table_crc) {
      throw damaged("The checksums of an extent are damaged.")
    }
    // A copy: Node reads small buffers into slabs of 64 KiB, and the table would keep one of them.
    const table = new DataView(Uint8Array.from(bytes).buffer)
    tables.add(extent, table)
    return table
  }
  const readPiece = async (piece: Piece, buffer: Uint8Array, { fileOf, verifies }: ReadMode) => {
    const { extent, from, into, length } = piece
    const file = await open(extent, fileOf)
    const target = buffer.subarray(into, into + length)
    const [table, bytes] = await Promise.all([
      tableOf(extent, fileOf),
      file.read(extent.position + from, length, target),
    ])
    if (bytes.length !== length) throw damaged("An extent is incomplete.")
    const is_own = bytes.buffer !== target.buffer || bytes.byteOffset !== target.byteOffset
    if (is_own) target.set(bytes)
    if (!verifies) return
    const first = Math.floor(from / chunk_bytes)
    const wrong = firstMismatch(target, piece.extent_chunk + first, table, first)
    if (wrong !== undefined) throw damaged(`Chunk ${wrong} does not match its checksum.`)
  }
  const readWindow = async (
    extents: ReadonlyArray<Extent>,
    size: number,
    { start, end }: BlobSpan,
    mode: ReadMode,
  ): Promise<Uint8Array> => {
    const from = Math.floor(start / chunk_bytes) * chunk_bytes
    const to = Math.min(chunkCount(end) * chunk_bytes, size)
    const buffer = memory.take(to - from)
    const pieces = piecesOf(extents, { start: from, end: to })
    const found = pieces.reduce((sum, { length }) => sum + length, 0)
    if (found !== buffer.length) throw damaged("The record names too few bytes.")
    await Promise.all(pieces.map((piece) => readPiece(piece, buffer, mode)))
    return memory.lend(buffer, start - from, end - from)
  }
  type Read = (
    extents: ReadonlyArray<Extent>,
    size: number,
    window: BlobSpan,
    fileOf?: FileOf,
  ) => Promise<Uint8Array>
  const reading =
    (verifies: boolean): Read =>
    (extents, size, window, fileOf = ownFile) =>
      readWindow(extents, size, window, { fileOf, verifies })
  return {
    /** Reads a window. Its memory is the caller's until `giveBack`. */
    read: reading(true),
    /** Reads a window for a caller that verifies the hash of all bytes. Detects damaged tables. */
    readUnverified: reading(false),
    giveBack: memory.giveBack,
  }
}
export type Windows = ReturnType<typeof makeWindows>
