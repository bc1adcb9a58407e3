/**
 * Writes a large blob to its extents while it arrives, in pieces with a few writes in flight. The
 * CRCs of its chunks follow each extent.
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

/** Size of a write: 1 MiB and fdatasync reach the disk's full throughput. */
export const piece_bytes = 1024 * 1024
/** Maximum number of pieces in flight or waiting for space, before the sender has to wait. */
const pieces_max = 4
/** Bytes reserved at a time for a blob of unknown size. */
const step_bytes = 8 * 1024 * 1024

/** The extent being filled: `used` of at most `capacity` bytes of the blob. */
interface Open {
  grant: Grant
  capacity: number
  used: number
}

/** The extents of a blob, the open one last. */
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
  /** Extends the open extent if so many bytes would fill it. */
  const grow = (place: Open, bytes: number) => {
    if (announced !== undefined || place.used + bytes < place.capacity) return
    const grant = extents.extend(place.grant, step_bytes)
    if (!grant) return
    place.grant = swap(place.grant, grant)
    place.capacity = dataBytes(grant.end - grant.start)
  }
  /** Closes the open extent. `table` holds the CRCs of its chunks. */
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

/** Tracks writes in flight, and wakes those that wait for one to end. */
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

/**
 * Maps a write error: a full disk is a fault of the put, anything else makes the volume read-only.
 */
const writeFault = (line: CommitLine, { noteFull }: ExtentFiles, cause: unknown) => {
  const fault = faultOf(cause)
  if (isFull(cause)) noteFull()
  if (fault._tag !== "BlobStoreFailed") return thrown(fault)
  line.fail(`A write of a large blob failed: ${fault.detail}`)
  return thrown({ _tag: "BlobStoreReadOnly", detail: line.failed() ?? fault.detail })
}

/** Receives all bytes of a blob in order: its hash. */
export interface Hash {
  readonly update: (bytes: Uint8Array) => unknown
}

export interface BlobStreamOptions {
  /** The blob's size in bytes, if known. */
  readonly announced?: number | undefined
  readonly hash?: Hash | undefined
  /** Called with the size of each write when it starts. */
  readonly wrote?: (bytes: number) => void
}

/** Writes parts to an extent and releases their memory. */
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

/** Takes pieces out of the queue and writes them one after the other. */
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
  /** Writes the CRC table of the last extent, if its last piece did not fill it. */
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
 * The stream of one blob. `push` takes bytes, which must not change afterwards. `pressure` returns
 * a promise if the sender should wait. `complete` writes the rest and returns the extents, which
 * `sync` makes durable. The hash covers all bytes only after that, or after `hashAll`, which ends
 * the input. `abandon` must always be called: it waits for writes in flight, and releases what no
 * record refers to.
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
        // Bytes may have arrived during the last write.
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
      // If writing has failed, a record that refers to the extents may be durable all the same.
      if (line.failed() === undefined) places.release()
    },
  }
}
export type BlobStream = ReturnType<typeof makeBlobStream>
