/**
 * The bytes of one large blob on their way to its extents: written in pieces while they arrive, a
 * few at once, each extent followed by the CRCs of its chunks.
 */

import { crc32c } from "@node-rs/crc32"
import { faultOf, isFull, thrown } from "#actors/blob-storage/blobs/fault.ts"
import { makeFifo } from "../extents/fifo.ts"
import { dataBytes, type ExtentFiles, type Grant, stretchBytes } from "../extents/files.ts"
import { giveBack, pagedCopy } from "../extents/memory.ts"
import { makeGatherer } from "../extents/pieces.ts"
import { page_bytes } from "../log/format.ts"
import type { Extent } from "../log/record.ts"
import type { CommitLine } from "../parts.ts"
import { makeChunkTable } from "../reads/chunks.ts"

/** One write: 1 MiB and fdatasync reach the disk's full speed. */
export const piece_bytes = 1024 * 1024
/** Pieces under way or waiting for room, before whoever sends has to wait. */
const pieces_max = 4
/** What a blob of unknown size takes at once, in bytes of the blob. */
const step_bytes = 8 * 1024 * 1024

/** The extent that is being filled: `used` of at most `capacity` bytes of the blob. */
interface Open {
  grant: Grant
  capacity: number
  used: number
}

/** The extents of a blob, the open one last; `left` is what is announced and not yet placed. */
const makePlaces = (extents: ExtentFiles, announced: number | undefined) => {
  const grants = new Set<Grant>()
  const closed: Array<Extent> = []
  let open: Open | undefined
  let placed = 0

  const swap = (old: Grant, grant: Grant) => {
    grants.delete(old)
    grants.add(grant)
    return grant
  }
  const wanted = () => (announced === undefined ? step_bytes : announced - placed)
  const capacityOf = (grant: Grant) => {
    const stretch_bytes = grant.end - grant.start
    const rest = announced === undefined ? undefined : announced - placed
    if (rest !== undefined && stretchBytes(rest) <= stretch_bytes) return rest
    return dataBytes(stretch_bytes)
  }
  const begin = async (): Promise<Open> => {
    const grant = await extents.reserve(stretchBytes(wanted()))
    grants.add(grant)
    open = { grant, capacity: capacityOf(grant), used: 0 }
    return open
  }
  /** Makes the open extent longer where it would be full after so many bytes. */
  const grow = (place: Open, bytes: number) => {
    if (announced !== undefined || place.used + bytes < place.capacity) return
    const grant = extents.extend(place.grant, step_bytes)
    if (!grant) return
    place.grant = swap(place.grant, grant)
    place.capacity = dataBytes(grant.end - grant.start)
  }
  /** Ends the open extent, whose chunks have this table. */
  const close = (place: Open, table: Uint8Array) => {
    const { start, segment } = place.grant
    swap(place.grant, extents.trim(place.grant, start + stretchBytes(place.used)))
    const where = { file: segment.number, position: start }
    closed.push({ ...where, bytes: place.used, table_crc: crc32c(table) })
    placed += place.used
    open = undefined
  }
  return {
    begin,
    grow,
    close,
    current: () => open,
    closed: (): ReadonlyArray<Extent> => closed,
    segments: () => new Set(Array.from(grants, ({ segment }) => segment)),
    release: () => {
      for (const grant of grants) extents.release(grant)
      grants.clear()
    },
  }
}

/** Writes under way, and who waits for one of them to end. */
const makeFlights = () => {
  let count = 0
  let broken: unknown
  let waiting: Array<() => void> = []
  const wake = () => {
    const all = waiting
    waiting = []
    for (const resolve of all) resolve()
  }
  return {
    start: (write: Promise<void>) => {
      count += 1
      write
        .catch((cause: unknown) => {
          broken ??= cause
        })
        .finally(() => {
          count -= 1
          wake()
        })
    },
    wake,
    break: (cause: unknown) => {
      broken ??= cause
      wake()
    },
    count: () => count,
    broken: () => broken,
    changed: () => new Promise<void>((resolve) => waiting.push(resolve)),
  }
}

/** What a failed write amounts to: a full disk is an answer, anything else ends all writing. */
const writeFault = (line: CommitLine, { noteFull }: ExtentFiles, cause: unknown) => {
  const fault = faultOf(cause)
  if (isFull(cause)) noteFull()
  if (fault._tag !== "BlobStoreFailed") return thrown(fault)
  line.fail(`A write of a large blob failed: ${fault.detail}`)
  return thrown({ _tag: "BlobStoreReadOnly", detail: line.failed() ?? fault.detail })
}

/** What is told of all bytes of a blob, in their order: its hash. */
export interface Hash {
  readonly update: (bytes: Uint8Array) => unknown
}

export interface BlobStreamOptions {
  /** The blob's size in bytes, where it is known. */
  readonly announced?: number | undefined
  readonly hash?: Hash | undefined
  /** Is called with the bytes of each write, when it begins. */
  readonly wrote?: (bytes: number) => void
}

/** Writes parts to where a place is; their memory may be used again then. */
const makeWrite =
  (line: CommitLine, extents: ExtentFiles, wrote: (bytes: number) => void) =>
  async ({ grant }: Open, position: number, parts: ReadonlyArray<Uint8Array>) => {
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    try {
      wrote(bytes)
      await grant.segment.file.write(parts, position)
    } catch (cause) {
      throw writeFault(line, extents, cause)
    } finally {
      giveBack(parts)
    }
  }

/** Takes bytes out of the fifo, a piece at a time, and writes each behind the one before. */
const makePieces = (
  line: CommitLine,
  extents: ExtentFiles,
  { announced, hash, wrote = () => {} }: BlobStreamOptions,
) => {
  const fifo = makeFifo()
  const chunks = makeChunkTable()
  const gatherer = makeGatherer((piece) => {
    hash?.update(piece)
    chunks.update(piece)
    fifo.push(piece)
  })
  const places = makePlaces(extents, announced)
  const flights = makeFlights()
  let is_ended = false

  const write = makeWrite(line, extents, wrote)
  const writeNext = (place: Open) => {
    const wanted = Math.min(piece_bytes, fifo.bytes())
    places.grow(place, wanted)
    const bytes = Math.min(wanted, place.capacity - place.used)
    const parts = fifo.take(bytes)
    const position = place.grant.start + place.used
    place.used += bytes
    if (place.used === place.capacity || (is_ended && fifo.bytes() === 0)) {
      const table = chunks.take(place.used)
      parts.push(place.used % page_bytes === 0 ? pagedCopy(table) : table)
      places.close(place, table)
    }
    flights.start(write(place, position, parts))
  }
  /** The table of the extent that the blob's last piece did not end. */
  const writeLastTable = () => {
    const place = places.current()
    if (!place) return
    const position = place.grant.start + place.used
    const table = chunks.take(place.used)
    places.close(place, table)
    flights.start(write(place, position, [table]))
  }
  const hasPiece = () => fifo.bytes() >= piece_bytes || (is_ended && fifo.bytes() > 0)
  const writeAll = async () => {
    while (hasPiece() && flights.broken() === undefined) {
      if (flights.count() >= pieces_max) {
        await flights.changed()
        continue
      }
      writeNext(places.current() ?? (await places.begin()))
      flights.wake()
    }
  }
  return {
    places,
    flights,
    hasPiece,
    writeAll,
    writeLastTable,
    push: gatherer.push,
    drop: () => {
      gatherer.drop()
      giveBack(fifo.take(fifo.bytes()))
    },
    end: () => {
      gatherer.flush()
      is_ended = true
    },
    isBusy: () => flights.count() + Math.floor(fifo.bytes() / piece_bytes) >= pieces_max,
  }
}

/**
 * The stream of one blob. `push` takes bytes that must not change any more; `pressure` answers a
 * promise where the next ones should wait; `complete` writes the rest and answers the extents,
 * which `sync` makes durable; before, the hash was not told of all bytes, unless `hashAll` says
 * that no more come. `abandon` in any case waits for what is under way and gives back what no
 * record keeps.
 */
export const makeBlobStream = (
  line: CommitLine,
  extents: ExtentFiles,
  options: BlobStreamOptions,
) => {
  const pieces = makePieces(line, extents, options)
  const { places, flights, isBusy } = pieces
  let writing: Promise<void> | undefined

  const run = () => {
    if (!pieces.hasPiece()) return
    writing ??= pieces
      .writeAll()
      .catch(flights.break)
      .finally(() => {
        writing = undefined
        // Bytes may have come while the last of them was on its way.
        if (flights.broken() === undefined) run()
      })
  }
  const assertWhole = () => {
    if (flights.broken() !== undefined) throw flights.broken()
  }
  const waitUntilCalm = async () => {
    while (isBusy() && flights.broken() === undefined) await flights.changed()
    assertWhole()
  }
  const settled = async () => {
    while (writing || flights.count() > 0) await (writing ?? flights.changed())
  }
  return {
    push: (bytes: Uint8Array) => {
      pieces.push(bytes)
      run()
    },
    hashAll: pieces.end,
    pressure: () => (isBusy() || flights.broken() !== undefined ? waitUntilCalm() : undefined),
    complete: async (): Promise<ReadonlyArray<Extent>> => {
      pieces.end()
      run()
      await settled()
      assertWhole()
      pieces.writeLastTable()
      await settled()
      assertWhole()
      return places.closed()
    },
    sync: async () => {
      try {
        await Promise.all(Array.from(places.segments(), extents.sync))
      } catch (cause) {
        throw thrown({ _tag: "BlobStoreReadOnly", detail: line.failed() ?? String(cause) })
      }
    },
    abandon: async () => {
      flights.break(new Error("the upload has ended"))
      await settled()
      pieces.drop()
      // Where writing has ended, a record that names them may be durable without anybody knowing.
      if (line.failed() === undefined) places.release()
    },
  }
}
export type BlobStream = ReturnType<typeof makeBlobStream>
