/**
 * Tracks the space of a volume's extent files: free, reserved by uploads, owned by live blobs, and
 * freed but still being read.
 *
 * A span goes from free to reserved to owned and back to free; only ownership survives a restart.
 * An owned span has one owner, because a rebuilt index replays old records too: a later record
 * takes a span over, and a blob frees only what it owns.
 */

import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type FreeSpace, unmonitored } from "../free-space/gauge.ts"
import { data_start } from "../log/format.ts"
import type { Extent } from "../log/record.ts"
import type { Extents, Segment, Segments } from "../parts.ts"
import { chunk_bytes, crc_bytes, tableBytes } from "../reads/chunks.ts"
import { makeAllocator } from "./allocator.ts"
import { type FreeMap, makeFreeMap, page_bytes, type Span, toPages } from "./free-map.ts"
import { makeOwnerTable, type OwnedSpan, type OwnerTable, owner_bytes } from "./owners.ts"
import { makePins, type Pinned } from "./pins.ts"
import { makeSyncs } from "./sync.ts"

/** A span reserved for an upload. */
export interface Allocation extends Span {
  readonly segment: Segment
}

/**
 * An extent file as compaction sees it. Sizes in bytes: a pinned span is neither live nor free, and
 * space that was never written is not counted.
 */
export interface ExtentFile {
  readonly segment: Segment
  readonly live_bytes: number
  readonly free_bytes: number
  readonly data_bytes: number
}

export interface ExtentFiles extends Extents {
  /**
   * Reserves `bytes` contiguous bytes. If the disk is full and no file has that many, the span is
   * shorter but holds at least one chunk. Rejects with the disk's error if it is full, and with
   * BlobCapacityExceeded if less than the floor would stay free, unless it is for upkeep. A later
   * write to the span may be the first to find the disk full (`noteFull`).
   */
  readonly reserve: (bytes: number, use?: { readonly is_upkeep: boolean }) => Promise<Allocation>
  /** Extends an allocation by `bytes`, if the space after it is free. */
  readonly extend: (allocation: Allocation, bytes: number) => Allocation | undefined
  /** Frees the part of an allocation after `end`. */
  readonly trim: (allocation: Allocation, end: number) => Allocation
  /** Frees an allocation that no record refers to. */
  readonly release: (allocation: Allocation) => void
  /** Notes that the disk had no space for a write. */
  readonly noteFull: () => void
  /** Keeps freed spans from being reused until the returned function is called. */
  readonly pin: (extents: ReadonlyArray<Extent>) => () => void
  /** Resolves once everything written to the file before the call is durable. */
  readonly sync: (segment: Segment) => Promise<void>
  readonly files: () => ReadonlyArray<ExtentFile>
  /** The owned spans of a file, by position. */
  readonly owners: (number: number) => ReadonlyArray<OwnedSpan>
  /** Frees an owned span that is not an extent of its owner's record. */
  readonly forget: (number: number, owners: OwnedSpan) => void
  /** Stops allocation from a file, so that it can be emptied, or resumes it. */
  readonly close: (number: number, is_closed: boolean) => void
  /** Whether nothing in the file is owned, reserved or being read. */
  readonly isEmpty: (number: number) => boolean
  /** Truncates an empty file, to return its space to the disk. False if there is none. */
  readonly cutEmpty: () => Promise<boolean>
  /** Size of the images, in bytes and number. */
  readonly imageSize: () => { readonly bytes: number; readonly images: number }
  /** Drops an empty file that is about to be retired. */
  readonly drop: (number: number) => void
}

/** The file's number, at the start of an image. */
const number_bytes = 4
/** A chunk with its CRC. */
const full_chunk_bytes = chunk_bytes + crc_bytes
/** Minimum length of a span, unless the whole blob fits. */
const span_bytes_min = toPages(full_chunk_bytes)

/** Space of a part of a blob with its CRC table. */
export const spanBytes = (bytes: number) => toPages(bytes + tableBytes(bytes))

/** Maximum disk space of a blob: its spans, and the headers of files created for them. */
export const diskBytes = (bytes: number, segment_bytes: number) => {
  const file_bytes = Math.max(chunk_bytes, dataBytes(segment_bytes - data_start))
  const files = Math.ceil(bytes / file_bytes)
  return spanBytes(bytes) + files * (data_start + page_bytes)
}

/** Maximum part of a blob that fits into a span, in whole chunks. */
export const dataBytes = (span_bytes: number) =>
  Math.floor(span_bytes / full_chunk_bytes) * chunk_bytes

export const spanOfExtent = ({ position, bytes }: Extent): Span => ({
  start: position,
  end: position + spanBytes(bytes),
})

export interface FileState {
  readonly segment: Segment | undefined
  free_map: FreeMap
  readonly owners: OwnerTable
  /** Spans reserved for uploads, by start. */
  readonly reserved: Map<number, Allocation>
  live_bytes: number
  /** Freed, but still being read. */
  pinned_bytes: number
  is_closed: boolean
}

const freeMapOf = (segment: Pick<Segment, "bytes" | "written_bytes"> | undefined) => {
  const end = Math.floor((segment?.bytes ?? 0) / page_bytes) * page_bytes
  const start = Math.min(data_start, end)
  const written = Math.min(toPages(segment?.written_bytes ?? 0), end)
  return makeFreeMap({ start, end: Math.max(start, written) }, end)
}

const sizeOf = ({ start, end }: Span) => end - start

const isEmpty = ({ owners, reserved, pinned_bytes }: FileState) =>
  owners.count() === 0 && reserved.size === 0 && pinned_bytes === 0

/**
 * Truncates an empty file. Its bytes could be overwritten at any time, so that a crash loses
 * nothing, and a replayed record finds space after the end.
 */
const cutEmpty = async (states: ReadonlyArray<FileState>) => {
  const state = states.find((one) => isEmpty(one) && one.free_map.reached() > data_start)
  if (!state?.segment) return false
  const { segment } = state
  const no_outcome = { start: data_start, end: data_start }
  // Reserved during this time: nothing allocates from the file, and nothing closes it as empty.
  state.free_map = makeFreeMap(no_outcome)
  state.reserved.set(data_start, { segment, ...no_outcome })
  await segment.file.truncate(data_start)
  await segment.file.datasync()
  state.reserved.delete(data_start)
  state.free_map = freeMapOf({ bytes: segment.bytes, written_bytes: data_start })
  return true
}

/** The files by number. A missing file that a record refers to has no space. */
const makeStates = (segments: Segments, images: Iterable<Uint8Array>) => {
  const states = new Map<number, FileState>()
  /** The owned space in all of them. */
  const counted = { spans: 0, live_bytes: 0 }
  const add = (number: number, owners: OwnerTable): FileState => {
    const segment = segments.find("ext", number)
    const free_map = freeMapOf(segment)
    const reserved = new Map<number, Allocation>()
    const state = { segment, free_map, owners, reserved, pinned_bytes: 0, is_closed: false }
    const live_bytes = owners.entries().reduce((sum, span) => {
      if (segment) free_map.takeOwned(span)
      return sum + sizeOf(span)
    }, 0)
    const added = { ...state, live_bytes }
    counted.spans += owners.count()
    counted.live_bytes += live_bytes
    states.set(number, added)
    return added
  }
  const of = (number: number) => states.get(number) ?? add(number, makeOwnerTable())
  for (const image of images) {
    // A copy, because the bytes may be part of a larger buffer, at any offset.
    const words = new Uint32Array(Uint8Array.from(image).buffer)
    const [number] = words
    if (number !== undefined) add(number, makeOwnerTable(words.subarray(1)))
  }
  /** All files, including those not requested yet. */
  const all = () => {
    for (const { number } of segments.all("ext")) of(number)
    return Array.from(states.values())
  }
  return { of, all, states, counted }
}
export type States = ReturnType<typeof makeStates>

/** The space that records own and free. */
const makeOwnership = ({ of, states, counted }: States) => {
  const giveBack = ({ file, ...span }: Pinned) => {
    const state = of(file)
    state.pinned_bytes -= sizeOf(span)
    state.free_map.release(span)
  }
  const { pin, defersFree, cancelFree } = makePins(giveBack)

  const keepOne = (id: BlobId, extent: Extent) => {
    const state = of(extent.file)
    const span = spanOfExtent(extent)
    if (state.owners.has(span, id)) return
    const is_reserved = state.reserved.get(span.start)?.end === span.end
    if (is_reserved) state.reserved.delete(span.start)
    counted.spans += 1
    for (const evicted of state.owners.keep(span, id)) {
      counted.spans -= 1
      state.live_bytes -= sizeOf(evicted)
      counted.live_bytes -= sizeOf(evicted)
      if (state.segment) state.free_map.release(evicted)
    }
    state.live_bytes += sizeOf(span)
    counted.live_bytes += sizeOf(span)
    if (is_reserved) return
    // Freed, still being read, and owned again: it was never free.
    if (cancelFree({ file: extent.file, ...span })) state.pinned_bytes -= sizeOf(span)
    else if (state.segment) state.free_map.takeOwned(span)
  }
  const freeOne = (id: BlobId, file: number, span: Span) => {
    const state = of(file)
    if (!state.owners.free(span, id)) return
    counted.spans -= 1
    state.live_bytes -= sizeOf(span)
    counted.live_bytes -= sizeOf(span)
    if (!state.segment) return
    if (defersFree({ file, ...span })) state.pinned_bytes += sizeOf(span)
    else state.free_map.release(span)
  }
  function* image() {
    for (const [number, { owners }] of states) {
      const words = owners.image()
      yield new Uint8Array(Uint32Array.from([number, ...words]).buffer)
    }
  }
  return {
    keep: (id: BlobId, extents: ReadonlyArray<Extent>) => {
      for (const extent of extents) keepOne(id, extent)
    },
    free: (id: BlobId, extents: ReadonlyArray<Extent>) => {
      for (const extent of extents) freeOne(id, extent.file, spanOfExtent(extent))
    },
    forget: (number: number, { id, start, end }: OwnedSpan) => freeOne(id, number, { start, end }),
    pin: (extents: ReadonlyArray<Extent>) =>
      pin(extents.map((extent) => ({ file: extent.file, ...spanOfExtent(extent) }))),
    image,
  }
}

const fileOf = ({ segment, live_bytes, free_map }: FileState): ReadonlyArray<ExtentFile> =>
  segment
    ? [
        {
          segment,
          live_bytes,
          free_bytes: free_map.freeBytes(),
          data_bytes: free_map.reached() - data_start,
        },
      ]
    : []

export interface ExtentOptions {
  readonly segments: Segments
  readonly segment_bytes: number
  /** Called after a failed sync: nothing may be written after that. */
  readonly fail: (detail: string) => void
  /** The result of `image` in the checkpoint that the volume was opened with. */
  readonly images?: Iterable<Uint8Array>
  readonly space?: FreeSpace
}

/** The extent files of a volume. `segments` must have adopted its files. */
export const makeExtents = ({
  segments,
  segment_bytes,
  fail,
  images,
  space = unmonitored,
}: ExtentOptions): ExtentFiles => {
  const file_states = makeStates(segments, images ?? [])
  const { of, all, states, counted } = file_states
  const files = () => all().flatMap(fileOf)
  return {
    ...makeOwnership(file_states),
    ...makeAllocator(file_states, { segments, segment_bytes, space, span_bytes_min }),
    sync: makeSyncs(fail),
    files,
    bytes: () => ({
      live: counted.live_bytes,
      dead: files().reduce((sum, { free_bytes }) => sum + free_bytes, 0),
    }),
    liveBytes: () => counted.live_bytes,
    owners: (number) => of(number).owners.entries(),
    close: (number, is_closed) => {
      of(number).is_closed = is_closed
    },
    isEmpty: (number) => isEmpty(of(number)),
    cutEmpty: () => cutEmpty(all()),
    // In constant time, because every batch calls it.
    imageSize: () => ({
      bytes: counted.spans * owner_bytes + states.size * number_bytes,
      images: states.size,
    }),
    drop: (number) => {
      counted.spans -= states.get(number)?.owners.count() ?? 0
      states.delete(number)
    },
  }
}
