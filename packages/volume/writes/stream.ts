/**
 * Writes a large blob to its extents while it arrives, in pieces with a few writes in flight. The
 * CRCs of its chunks follow each extent.
 */

import { crc32c } from "@node-rs/crc32"
import { faultError, faultOf, isFull } from "#actors/blob-storage/ports/fault.ts"
import { makeByteQueue } from "../extents/byte-queue.ts"
import { type Allocation, dataBytes, type ExtentFiles, spanBytes } from "../extents/files.ts"
import { alignedCopy, giveBack, makeGatherer } from "../extents/memory.ts"
import { page_bytes } from "../log/format.ts"
import type { Extent } from "../log/record.ts"
import type { CommitQueue } from "../parts.ts"
import { makeChunkTable } from "../reads/chunks.ts"

/** Size of a write: 1 MiB and fdatasync reach the disk's full throughput. */
export const piece_bytes = 1024 * 1024
/** Maximum number of pieces in flight or waiting for space, before the sender has to wait. */
const pieces_max = 4
/** Bytes reserved at a time for a blob of unknown size. */
const step_bytes = 8 * 1024 * 1024

/** The extent being filled: `used` of at most `capacity` bytes of the blob. */
interface OpenExtent {
  allocation: Allocation
  capacity: number
  used: number
}

/** The extents of a blob, the open one last. */
const makeBlobExtents = (extents: ExtentFiles, announced: number | undefined) => {
  const allocations = new Set<Allocation>()
  const closed: Array<Extent> = []
  let open: OpenExtent | undefined
  let placed_bytes = 0

  const replace = (old: Allocation, allocation: Allocation) => {
    allocations.delete(old)
    allocations.add(allocation)
    return allocation
  }
  const wanted = () => (announced === undefined ? step_bytes : announced - placed_bytes)
  const capacityOf = (allocation: Allocation) => {
    const span_bytes = allocation.end - allocation.start
    const rest = announced === undefined ? undefined : announced - placed_bytes
    if (rest !== undefined && spanBytes(rest) <= span_bytes) return rest
    return dataBytes(span_bytes)
  }
  const begin = async (): Promise<OpenExtent> => {
    const allocation = await extents.reserve(spanBytes(wanted()))
    allocations.add(allocation)
    open = { allocation, capacity: capacityOf(allocation), used: 0 }
    return open
  }
  /** Extends the open extent if this many bytes would fill it. */
  const grow = (extent: OpenExtent, bytes: number) => {
    if (announced !== undefined || extent.used + bytes < extent.capacity) return
    const allocation = extents.extend(extent.allocation, step_bytes)
    if (!allocation) return
    extent.allocation = replace(extent.allocation, allocation)
    extent.capacity = dataBytes(allocation.end - allocation.start)
  }
  /** Closes the open extent. `table` holds the CRCs of its chunks. */
  const close = (extent: OpenExtent, table: Uint8Array) => {
    const { start, segment } = extent.allocation
    replace(extent.allocation, extents.trim(extent.allocation, start + spanBytes(extent.used)))
    const where = { file: segment.number, position: start }
    closed.push({ ...where, bytes: extent.used, table_crc: crc32c(table) })
    placed_bytes += extent.used
    open = undefined
  }
  return {
    begin,
    grow,
    close,
    current: () => open,
    closed: (): ReadonlyArray<Extent> => closed,
    segments: () => new Set(Array.from(allocations, ({ segment }) => segment)),
    release: () => {
      for (const allocation of allocations) extents.release(allocation)
      allocations.clear()
    },
  }
}

/** Tracks writes in flight, and wakes those that wait for one to end. */
const makeInFlight = () => {
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
const writeFault = (commits: CommitQueue, { noteFull }: ExtentFiles, cause: unknown) => {
  const fault = faultOf(cause)
  if (isFull(cause)) noteFull()
  if (fault._tag !== "BlobStoreFailed") return faultError(fault)
  commits.fail(`A write of a large blob failed: ${fault.detail}`)
  return faultError({ _tag: "BlobStoreReadOnly", detail: commits.failed() ?? fault.detail })
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
  readonly noteWritten?: (bytes: number) => void
}

/** Writes parts to an extent and releases their memory. */
const makeWrite =
  (commits: CommitQueue, extents: ExtentFiles, noteWritten: (bytes: number) => void) =>
  async ({ allocation }: OpenExtent, position: number, parts: ReadonlyArray<Uint8Array>) => {
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    try {
      noteWritten(bytes)
      await allocation.segment.file.write(parts, position)
    } catch (cause) {
      throw writeFault(commits, extents, cause)
    } finally {
      giveBack(parts)
    }
  }

/** Takes pieces out of the queue and writes them one after the other. */
const makePieces = (
  commits: CommitQueue,
  extents: ExtentFiles,
  { announced, hash, noteWritten = () => {} }: BlobStreamOptions,
) => {
  const queue = makeByteQueue()
  const chunks = makeChunkTable()
  const gatherer = makeGatherer((piece) => {
    hash?.update(piece)
    chunks.update(piece)
    queue.push(piece)
  })
  const blob_extents = makeBlobExtents(extents, announced)
  const in_flight = makeInFlight()
  let is_ended = false

  const write = makeWrite(commits, extents, noteWritten)
  const writeNext = (extent: OpenExtent) => {
    const wanted = Math.min(piece_bytes, queue.bytes())
    blob_extents.grow(extent, wanted)
    const bytes = Math.min(wanted, extent.capacity - extent.used)
    const parts = queue.take(bytes)
    const position = extent.allocation.start + extent.used
    extent.used += bytes
    if (extent.used === extent.capacity || (is_ended && queue.bytes() === 0)) {
      const table = chunks.take(extent.used)
      parts.push(extent.used % page_bytes === 0 ? alignedCopy(table) : table)
      blob_extents.close(extent, table)
    }
    in_flight.start(write(extent, position, parts))
  }
  /** Writes the CRC table of the last extent, if its last piece did not fill it. */
  const writeLastTable = () => {
    const extent = blob_extents.current()
    if (!extent) return
    const position = extent.allocation.start + extent.used
    const table = chunks.take(extent.used)
    blob_extents.close(extent, table)
    in_flight.start(write(extent, position, [table]))
  }
  const hasPiece = () => queue.bytes() >= piece_bytes || (is_ended && queue.bytes() > 0)
  const writeAll = async () => {
    while (hasPiece() && in_flight.broken() === undefined) {
      if (in_flight.count() >= pieces_max) {
        await in_flight.changed()
        continue
      }
      writeNext(blob_extents.current() ?? (await blob_extents.begin()))
      in_flight.wake()
    }
  }
  return {
    blob_extents,
    in_flight,
    hasPiece,
    writeAll,
    writeLastTable,
    push: gatherer.push,
    drop: () => {
      gatherer.drop()
      giveBack(queue.take(queue.bytes()))
    },
    end: () => {
      gatherer.flush()
      is_ended = true
    },
    isBusy: () => in_flight.count() + Math.floor(queue.bytes() / piece_bytes) >= pieces_max,
  }
}

/**
 * The stream of one blob. `push` takes bytes, which must not change afterwards. `pressure` returns
 * a promise if the sender should wait. `complete` writes the rest and returns the extents, which
 * `sync` makes durable. The hash covers all bytes only after that, or after `hashAll`, which ends
 * the input. `abandon` must always be called: it waits for writes in flight, and releases extents
 * that no record refers to.
 */
export const makeBlobStream = (
  commits: CommitQueue,
  extents: ExtentFiles,
  options: BlobStreamOptions,
) => {
  const pieces = makePieces(commits, extents, options)
  const { blob_extents, in_flight, isBusy } = pieces
  let writing: Promise<void> | undefined

  const run = () => {
    if (!pieces.hasPiece()) return
    writing ??= pieces
      .writeAll()
      .catch(in_flight.break)
      .finally(() => {
        writing = undefined
        // Bytes may have arrived during the last write.
        if (in_flight.broken() === undefined) run()
      })
  }
  const throwIfBroken = () => {
    if (in_flight.broken() !== undefined) throw in_flight.broken()
  }
  const waitForCapacity = async () => {
    while (isBusy() && in_flight.broken() === undefined) await in_flight.changed()
    throwIfBroken()
  }
  const settled = async () => {
    while (writing || in_flight.count() > 0) await (writing ?? in_flight.changed())
  }
  return {
    push: (bytes: Uint8Array) => {
      pieces.push(bytes)
      run()
    },
    hashAll: pieces.end,
    pressure: () => (isBusy() || in_flight.broken() !== undefined ? waitForCapacity() : undefined),
    complete: async (): Promise<ReadonlyArray<Extent>> => {
      pieces.end()
      run()
      await settled()
      throwIfBroken()
      pieces.writeLastTable()
      await settled()
      throwIfBroken()
      return blob_extents.closed()
    },
    sync: async () => {
      try {
        await Promise.all(Array.from(blob_extents.segments(), extents.sync))
      } catch (cause) {
        throw faultError({ _tag: "BlobStoreReadOnly", detail: commits.failed() ?? String(cause) })
      }
    },
    abandon: async () => {
      in_flight.break(new Error("the upload has ended"))
      await settled()
      pieces.drop()
      // If writing has failed, a record that refers to the extents may be durable all the same.
      if (commits.failed() === undefined) blob_extents.release()
    },
  }
}
export type BlobStream = ReturnType<typeof makeBlobStream>
