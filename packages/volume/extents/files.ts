/**
 * A volume's files of extents: what is free in them, what uploads have reserved, what live blobs
 * keep, and what is given free but still read.
 *
 * A stretch goes from free to reserved to kept and back to free; only what is kept outlives a
 * restart. A kept stretch has an owner, since a rebuilt index replays old records too: a later
 * record takes a stretch over, and nobody gives free what is another's.
 */

import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type FreeSpace, unwatched } from "../free-space/gauge.ts"
import { makeGrants } from "../free-space/grants.ts"
import { data_start } from "../log/format.ts"
import type { Extent } from "../log/record.ts"
import { makeSyncs } from "../log/sync.ts"
import type { Extents, Segment, Segments } from "../parts.ts"
import { chunk_bytes, crc_bytes, tableBytes } from "../reads/chunks.ts"
import { type Kept, type KeptStretch, kept_bytes, makeKept } from "./kept.ts"
import { makePins, type Pinned } from "./pins.ts"
import { makeRoom, page_bytes, type Room, type Stretch, toPages } from "./room.ts"

/** A stretch that an upload has to itself. */
export interface Grant extends Stretch {
  readonly segment: Segment
}

/**
 * Of one file what is needed to empty it. Bytes; what is pinned is neither live nor free, and of
 * what was never written nothing is counted.
 */
export interface ExtentFile {
  readonly segment: Segment
  readonly live_bytes: number
  readonly free_bytes: number
  readonly data_bytes: number
}

export interface ExtentFiles extends Extents {
  /**
   * A stretch of `bytes`, or a shorter one that holds a chunk at least where the disk is full and
   * no file has so many in a row. Rejects with the disk's error where it is full, and with
   * BlobCapacityExceeded where it would leave less than the floor, unless it is for upkeep. A write
   * to it may be what finds the disk full (`noteFull`).
   */
  readonly reserve: (bytes: number, use?: { readonly is_upkeep: boolean }) => Promise<Grant>
  /** The grant with `bytes` more behind it, where they are free. */
  readonly extend: (grant: Grant, bytes: number) => Grant | undefined
  /** The grant without what is behind `end`, which is free again. */
  readonly trim: (grant: Grant, end: number) => Grant
  /** Gives back what no record keeps. */
  readonly release: (grant: Grant) => void
  /** Tells that the disk had no room for a write. */
  readonly noteFull: () => void
  /** Holds freed stretches back from being used anew until the answered function is called. */
  readonly pin: (extents: ReadonlyArray<Extent>) => () => void
  /** Resolves once all that was written to the file before the call is durable. */
  readonly sync: (segment: Segment) => Promise<void>
  readonly files: () => ReadonlyArray<ExtentFile>
  /** Who keeps what in a file, by position. */
  readonly owners: (number: number) => ReadonlyArray<KeptStretch>
  /** Gives free what an owner keeps in a file that is no extent of its record. */
  readonly forget: (number: number, kept: KeptStretch) => void
  /** Takes nothing more from a file, so that it can be emptied; or takes from it again. */
  readonly close: (number: number, is_closed: boolean) => void
  /** Whether nothing in the file is kept, reserved or read. */
  readonly isEmpty: (number: number) => boolean
  /** Gives the disk the room of a file without anything in it; false where there is none. */
  readonly cutEmpty: () => Promise<boolean>
  /** What the images take, in bytes and images. */
  readonly imageSize: () => { readonly bytes: number; readonly images: number }
  /** Forgets an empty file, which is about to be retired. */
  readonly drop: (number: number) => void
}

/** The file's number, which an image begins with. */
const number_bytes = 4
/** A chunk with the entry of its CRC. */
const full_chunk_bytes = chunk_bytes + crc_bytes
/** No stretch is shorter unless all of the blob fits it. */
const stretch_bytes_min = toPages(full_chunk_bytes)

/** What a blob's part and its table take of a file. */
export const stretchBytes = (bytes: number) => toPages(bytes + tableBytes(bytes))

/** What a blob takes of the disk at most: its stretches, and the headers of files made for them. */
export const diskBytes = (bytes: number, segment_bytes: number) => {
  const file_bytes = Math.max(chunk_bytes, dataBytes(segment_bytes - data_start))
  const files = Math.ceil(bytes / file_bytes)
  return stretchBytes(bytes) + files * (data_start + page_bytes)
}

/** The most of a blob that fits a stretch, in whole chunks unless it is the blob's end. */
export const dataBytes = (stretch_bytes: number) =>
  Math.floor(stretch_bytes / full_chunk_bytes) * chunk_bytes

export const stretchOfExtent = ({ position, bytes }: Extent): Stretch => ({
  start: position,
  end: position + stretchBytes(bytes),
})

export interface FileState {
  readonly segment: Segment | undefined
  room: Room
  readonly kept: Kept
  /** What uploads have, by where it begins. */
  readonly reserved: Map<number, Grant>
  live_bytes: number
  /** Given free, but still read. */
  pinned_bytes: number
  is_closed: boolean
}

const roomOf = (segment: Pick<Segment, "bytes" | "written_bytes"> | undefined) => {
  const end = Math.floor((segment?.bytes ?? 0) / page_bytes) * page_bytes
  const start = Math.min(data_start, end)
  const written = Math.min(toPages(segment?.written_bytes ?? 0), end)
  return makeRoom({ start, end: Math.max(start, written) }, end)
}

const sizeOf = ({ start, end }: Stretch) => end - start

const isEmpty = ({ kept, reserved, pinned_bytes }: FileState) =>
  kept.count() === 0 && reserved.size === 0 && pinned_bytes === 0

/**
 * Cuts a file off in which nothing is. Its bytes may be overwritten at any time: nobody misses
 * them after a crash either, and a record that is replayed finds room behind the end.
 */
const cutEmpty = async (states: ReadonlyArray<FileState>) => {
  const state = states.find((one) => isEmpty(one) && one.room.reached() > data_start)
  if (!state?.segment) return false
  const { segment } = state
  const nothing = { start: data_start, end: data_start }
  // Meanwhile nobody takes any of it, and nobody closes the file, which seems to be in use.
  state.room = makeRoom(nothing)
  state.reserved.set(data_start, { segment, ...nothing })
  await segment.file.truncate(data_start)
  await segment.file.datasync()
  state.reserved.delete(data_start)
  state.room = roomOf({ bytes: segment.bytes, written_bytes: data_start })
  return true
}

/** The files by number; one that a record names and that is not there has no room. */
const makeStates = (segments: Segments, images: Iterable<Uint8Array>) => {
  const states = new Map<number, FileState>()
  /** What is kept in all of them. */
  const counted = { stretches: 0, live_bytes: 0 }
  const add = (number: number, kept: Kept): FileState => {
    const segment = segments.find("ext", number)
    const room = roomOf(segment)
    const reserved = new Map<number, Grant>()
    const state = { segment, room, kept, reserved, pinned_bytes: 0, is_closed: false }
    const live_bytes = kept.entries().reduce((sum, stretch) => {
      if (segment) room.takeKept(stretch)
      return sum + sizeOf(stretch)
    }, 0)
    const added = { ...state, live_bytes }
    counted.stretches += kept.count()
    counted.live_bytes += live_bytes
    states.set(number, added)
    return added
  }
  const of = (number: number) => states.get(number) ?? add(number, makeKept())
  for (const image of images) {
    // A copy, since the bytes may be a part of a larger buffer, at any offset.
    const words = new Uint32Array(Uint8Array.from(image).buffer)
    const [number] = words
    if (number !== undefined) add(number, makeKept(words.subarray(1)))
  }
  /** All of them, those too that nobody asked for yet. */
  const all = () => {
    for (const { number } of segments.all("ext")) of(number)
    return Array.from(states.values())
  }
  return { of, all, states, counted }
}
export type States = ReturnType<typeof makeStates>

/** What records keep, and what they give free. */
const makeKeeping = ({ of, states, counted }: States) => {
  const giveBack = ({ file, ...stretch }: Pinned) => {
    const state = of(file)
    state.pinned_bytes -= sizeOf(stretch)
    state.room.give(stretch)
  }
  const { pin, holdsBack, takeBack } = makePins(giveBack)

  const keepOne = (id: BlobId, extent: Extent) => {
    const state = of(extent.file)
    const stretch = stretchOfExtent(extent)
    if (state.kept.has(stretch, id)) return
    const is_reserved = state.reserved.get(stretch.start)?.end === stretch.end
    if (is_reserved) state.reserved.delete(stretch.start)
    counted.stretches += 1
    for (const evicted of state.kept.keep(stretch, id)) {
      counted.stretches -= 1
      state.live_bytes -= sizeOf(evicted)
      counted.live_bytes -= sizeOf(evicted)
      if (state.segment) state.room.give(evicted)
    }
    state.live_bytes += sizeOf(stretch)
    counted.live_bytes += sizeOf(stretch)
    if (is_reserved) return
    // Given free, still read, and kept again: it was never free.
    if (takeBack({ file: extent.file, ...stretch })) state.pinned_bytes -= sizeOf(stretch)
    else if (state.segment) state.room.takeKept(stretch)
  }
  const freeOne = (id: BlobId, file: number, stretch: Stretch) => {
    const state = of(file)
    if (!state.kept.free(stretch, id)) return
    counted.stretches -= 1
    state.live_bytes -= sizeOf(stretch)
    counted.live_bytes -= sizeOf(stretch)
    if (!state.segment) return
    if (holdsBack({ file, ...stretch })) state.pinned_bytes += sizeOf(stretch)
    else state.room.give(stretch)
  }
  function* image() {
    for (const [number, { kept }] of states) {
      const words = kept.image()
      yield new Uint8Array(Uint32Array.from([number, ...words]).buffer)
    }
  }
  return {
    keep: (id: BlobId, extents: ReadonlyArray<Extent>) => {
      for (const extent of extents) keepOne(id, extent)
    },
    free: (id: BlobId, extents: ReadonlyArray<Extent>) => {
      for (const extent of extents) freeOne(id, extent.file, stretchOfExtent(extent))
    },
    forget: (number: number, { id, start, end }: KeptStretch) =>
      freeOne(id, number, { start, end }),
    pin: (extents: ReadonlyArray<Extent>) =>
      pin(extents.map((extent) => ({ file: extent.file, ...stretchOfExtent(extent) }))),
    image,
  }
}

const fileOf = ({ segment, live_bytes, room }: FileState): ReadonlyArray<ExtentFile> =>
  segment
    ? [
        {
          segment,
          live_bytes,
          free_bytes: room.freeBytes(),
          data_bytes: room.reached() - data_start,
        },
      ]
    : []

export interface ExtentOptions {
  readonly segments: Segments
  readonly segment_bytes: number
  /** What is called when a sync failed: nothing may be written any more. */
  readonly fail: (detail: string) => void
  /** What `image` gave for the checkpoint that the volume was opened with. */
  readonly images?: Iterable<Uint8Array>
  readonly space?: FreeSpace
}

/** The files of extents of a volume whose files are known to `segments` by now. */
export const makeExtents = ({
  segments,
  segment_bytes,
  fail,
  images,
  space = unwatched,
}: ExtentOptions): ExtentFiles => {
  const made = makeStates(segments, images ?? [])
  const { of, all, states, counted } = made
  const files = () => all().flatMap(fileOf)
  return {
    ...makeKeeping(made),
    ...makeGrants(made, { segments, segment_bytes, space, stretch_bytes_min }),
    sync: makeSyncs(fail),
    files,
    bytes: () => ({
      live: counted.live_bytes,
      dead: files().reduce((sum, { free_bytes }) => sum + free_bytes, 0),
    }),
    liveBytes: () => counted.live_bytes,
    owners: (number) => of(number).kept.entries(),
    close: (number, is_closed) => {
      of(number).is_closed = is_closed
    },
    isEmpty: (number) => isEmpty(of(number)),
    cutEmpty: () => cutEmpty(all()),
    // Asked for each batch, of however many files.
    imageSize: () => ({
      bytes: counted.stretches * kept_bytes + states.size * number_bytes,
      images: states.size,
    }),
    drop: (number) => {
      counted.stretches -= states.get(number)?.kept.count() ?? 0
      states.delete(number)
    },
  }
}
