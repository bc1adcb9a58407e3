/**
 * Space for the next checkpoint: its files grow in the background while the disk has space, and a
 * put for which they would be too small is refused as on a full disk. So the space of deleted blobs
 * can always be reclaimed, which takes a checkpoint first.
 */
import { type BlobFault, faultOf, isFull } from "#actors/blob-storage/ports/fault.ts"
import type { VolumeDisk } from "../disk.ts"
import type { ExtentFiles } from "../extents/files.ts"
import type { FreeSpace } from "../free-space/gauge.ts"
import type { OpenSegments } from "../log/segments.ts"
import type { VolumeState } from "../log/state.ts"
import { makeMutex } from "../mutex.ts"
import type { Index } from "../parts.ts"
import {
  checkpointBytes,
  checkpointFileBytes,
  first_bytes,
  growCheckpointFiles,
} from "./checkpoint.ts"

/**
 * The reserve, in bytes and as a share of a checkpoint's current size: for the puts of one batch,
 * and for deletes of absent ids, which add an entry each and are never refused.
 */
const margin_bytes = 32 * 1024
const margin_share = 1 / 8
/**
 * The files grow when a checkpoint would take this share of them, to a multiple of the checkpoint's
 * size.
 */
const full_share = 2 / 3
const growth_factor = 2
/** Minimum time between attempts on a full disk, in milliseconds. */
const full_retry_ms = 200

export interface CheckpointSpaceParts {
  readonly disk: VolumeDisk
  readonly dir: string
  readonly index: Index
  readonly extents: ExtentFiles
  readonly state: Pick<VolumeState, "files">
  readonly segments: Pick<OpenSegments, "spareCount" | "discardSpare">
  readonly now: () => number
  readonly fail: (detail: string) => void
  readonly space: FreeSpace
}

export interface CheckpointSpace {
  /** Runs a task that writes to the files, one at a time. It must not wait for the commit queue. */
  readonly exclusively: <A>(work: () => Promise<A>) => Promise<A>
  /** Creates the files if they are missing. A full disk is not an error. */
  readonly begin: () => Promise<void>
  /** Grows the files in the background if they are nearly full. */
  readonly growAhead: () => void
  /** Why puts are refused, if neither growing the files nor `makeSpace` helps. */
  readonly fault: () => Promise<BlobFault | undefined>
  /**
   * Grows the files with the space of a second spare log file, which nothing durable refers to; or
   * of an empty extent file; or of the first spare log file if none is to be kept. Returns whether
   * there was one.
   */
  readonly makeSpace: (spare_kept: number) => Promise<boolean>
  /** Resolves when nothing writes to the files. */
  readonly settled: () => Promise<void>
}

const disk_full: BlobFault = { _tag: "BlobCapacityExceeded", detail: "The disk is full." }

/** Current size of a checkpoint, including the reserve. */
const neededBytes = ({ index, extents, state }: CheckpointSpaceParts) => {
  const kept = extents.imageSize()
  const own = index.imageSize()
  const images = kept.images + own.images
  const files = kept.images + state.files.size
  const bytes = checkpointBytes(kept.bytes + own.bytes, { images, files })
  return bytes * (1 + margin_share) + margin_bytes
}

export const makeCheckpointSpace = (parts: CheckpointSpaceParts): CheckpointSpace => {
  const { disk, dir, segments, extents, now, fail, space } = parts
  const needed = () => neededBytes(parts)
  const { run: exclusively, settled } = makeMutex()
  let file_bytes = 0
  let full: { readonly fault: BlobFault; readonly at: number } | undefined
  let growing: Promise<void> | undefined

  /** Grows both files to the needed length first, before either grows further. */
  const growTo = async (lengths: ReadonlyArray<number>) => {
    try {
      for (const bytes of lengths) await growCheckpointFiles(disk, dir, bytes)
      full = undefined
    } catch (cause) {
      if (!isFull(cause)) throw cause
      full = { fault: faultOf(cause), at: now() }
    }
    file_bytes = await checkpointFileBytes(disk, dir)
  }
  /**
   * Grows the files for puts, which leave the floor free. A checkpoint itself may use all free
   * space.
   */
  const growForPuts = async () => {
    await space.refresh()
    const faultAt = (bytes: number) => space.fault(2 * Math.max(0, bytes - file_bytes))
    const lengths = [needed(), growth_factor * needed()]
    const allowed = lengths.filter((bytes) => faultAt(bytes) === undefined)
    if (allowed.length > 0) return growTo(allowed)
    full = { fault: faultAt(needed()) ?? disk_full, at: now() }
  }
  const grow = async () => {
    try {
      await exclusively(growForPuts)
    } catch (cause) {
      fail(`The files of checkpoints could not be grown: ${String(cause)}`)
    }
  }
  const growMore = (): Promise<void> => {
    if (full && now() - full.at < full_retry_ms) return Promise.resolve()
    growing ??= grow().finally(() => {
      growing = undefined
    })
    return growing
  }
  const makeSpace = (spare_kept: number) =>
    exclusively(async () => {
      const count = segments.spareCount("log")
      if (count > 1 || !(await extents.cutEmpty())) {
        if (count <= spare_kept) return false
        await segments.discardSpare("log")
      }
      await growTo([needed()])
      return true
    })
  return {
    exclusively,
    settled,
    begin: () => exclusively(() => growTo([first_bytes])),
    growAhead: () => {
      if (needed() > full_share * file_bytes) void growMore()
    },
    fault: async () => {
      const isShort = () => needed() > file_bytes
      // Called before each batch, which hardly ever needs more than this check.
      if (!isShort()) return undefined
      // The growth in progress may have started when the disk was full.
      await growing
      if (isShort()) await growMore()
      while (isShort() && (await makeSpace(1)));
      return isShort() ? full?.fault : undefined
    },
    makeSpace,
  }
}
