/**
 * The bytes of a large blob from its extents, a window at a time, each chunk verified against the
 * extent's table, and the table against the record, before anything is handed on.
 */
import { crc32c } from "@node-rs/crc32"
import type { VolumeFile } from "../disk.ts"
import type { Extent } from "../log/record.ts"
import type { Segment, Segments } from "../parts.ts"
import { chunk_bytes, chunkCount, firstMismatch, tableBytes, window_bytes } from "./chunks.ts"
import { damaged } from "./damage.ts"

/** Tables that are kept in memory, in bytes: those of 64 GiB of blobs. */
const tables_bytes_max = 4 * 1024 * 1024

/** A stretch of a blob: from `start` to before `end`, both within its size. */
export interface BlobStretch {
  readonly start: number
  readonly end: number
}

/** The stretch that a range means: what lies past the end is left out. */
export const stretchOf = (size: number, offset = 0, length = size): BlobStretch => {
  const start = Math.min(Math.max(offset, 0), size)
  return { start, end: Math.min(start + Math.max(length, 0), size) }
}

/** The end of the window that begins at `start`: at a chunk's border or at the stretch's end. */
export const windowEnd = ({ start, end }: BlobStretch) =>
  Math.min(Math.floor(start / chunk_bytes) * chunk_bytes + window_bytes, end)

/** The windows of a stretch, one behind the other. */
export function* windowsIn({ start, end }: BlobStretch): Generator<BlobStretch> {
  for (let at = start; at < end; ) {
    const window = { start: at, end: windowEnd({ start: at, end }) }
    yield window
    at = window.end
  }
}

/** Which file is read for a segment: its own, or one that was opened anew. */
export type FileOf = (segment: Segment) => VolumeFile | Promise<VolumeFile>

export const ownFile: FileOf = ({ file }) => file

/** Tables that were read and verified lately, by what identifies them. */
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
interface Way {
  readonly fileOf: FileOf
  /** Whether the bytes are compared with their checksums. */
  readonly compares: boolean
}

/** A part of a window that one extent holds. */
interface Piece {
  readonly extent: Extent
  /** The number of the extent's first chunk in the blob. */
  readonly extent_chunk: number
  /** Where the piece begins in the extent and in the window's buffer, and its length. */
  readonly from: number
  readonly into: number
  readonly length: number
}

/** Whole windows that wait to be read into again: of 32 readers at once. 30 MiB at most. */
const spare_windows_max = 32

/**
 * Memory of whole windows, which are nearly all that a large blob is read in: new memory for each
 * costs the kernel its pages and V8 a collection for each few of them. What is not given back is
 * V8's to collect.
 */
const makeWindowMemory = () => {
  const spare: Array<Buffer> = []
  /** By the window itself: the same memory may be another reader's by now. */
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
    /** What was not lent, or was given back before, is left alone. */
    giveBack: (window: Uint8Array) => {
      const buffer = lent.get(window)
      lent.delete(window)
      if (buffer && spare.length < spare_windows_max) spare.push(buffer)
    },
  }
}

/** What holds the bytes from `start` to `end`, which begin with a chunk. */
const piecesOf = (extents: ReadonlyArray<Extent>, { start, end }: BlobStretch) => {
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
 * Reads windows. Throws `damaged` where bytes are missing or are not those that were put; what was
 * freed must be pinned by the caller.
 */
export const makeWindows = (segments: Segments) => {
  const tables = makeTables()
  const memory = makeWindowMemory()

  const open = async ({ file }: Extent, fileOf: FileOf) => {
    const segment = segments.find("ext", file)
    if (!segment) throw damaged(`The file of extents ${file} is gone.`, "lost")
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
    const table = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    tables.add(extent, table)
    return table
  }
  const readPiece = async (piece: Piece, buffer: Uint8Array, { fileOf, compares }: Way) => {
    const { extent, from, into, length } = piece
    const file = await open(extent, fileOf)
    const target = buffer.subarray(into, into + length)
    const [table, bytes] = await Promise.all([
      tableOf(extent, fileOf),
      file.read(extent.position + from, length, target),
    ])
    if (bytes.length !== length) throw damaged("An extent ends too early.")
    const is_own = bytes.buffer !== target.buffer || bytes.byteOffset !== target.byteOffset
    if (is_own) target.set(bytes)
    if (!compares) return
    const first = Math.floor(from / chunk_bytes)
    const wrong = firstMismatch(target, piece.extent_chunk + first, table, first)
    if (wrong !== undefined) throw damaged(`Chunk ${wrong} does not match its checksum.`)
  }
  const readWindow = async (
    extents: ReadonlyArray<Extent>,
    size: number,
    { start, end }: BlobStretch,
    way: Way,
  ): Promise<Uint8Array> => {
    const from = Math.floor(start / chunk_bytes) * chunk_bytes
    const to = Math.min(chunkCount(end) * chunk_bytes, size)
    const buffer = memory.take(to - from)
    const pieces = piecesOf(extents, { start: from, end: to })
    const found = pieces.reduce((sum, { length }) => sum + length, 0)
    if (found !== buffer.length) throw damaged("The record names too few bytes.")
    await Promise.all(pieces.map((piece) => readPiece(piece, buffer, way)))
    return memory.lend(buffer, start - from, end - from)
  }
  type Read = (
    extents: ReadonlyArray<Extent>,
    size: number,
    window: BlobStretch,
    fileOf?: FileOf,
  ) => Promise<Uint8Array>
  const reading =
    (compares: boolean): Read =>
    (extents, size, window, fileOf = ownFile) =>
      readWindow(extents, size, window, { fileOf, compares })
  return {
    /** The bytes of a window, in memory of their own until `giveBack` is told of it. */
    read: reading(true),
    /** The same for who compares all the bytes with their hash. Damaged checksums are seen here. */
    readToHash: reading(false),
    giveBack: memory.giveBack,
  }
}
export type Windows = ReturnType<typeof makeWindows>
