/**
 * Free space on the disk that holds a volume, and the floor that puts must leave.
 *
 * The gauge queries the file system at most once per `refresh_ms`, and subtracts the volume's own
 * writes since: a put costs a few comparisons and no system call. It always includes our own
 * writes, and sees those of other programs after at most `refresh_ms`.
 *
 * Source: DECISIONS of document 1, limits not shown; decision 0177.
 */
import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"
import type { VolumeDisk, VolumeFile } from "../disk.ts"

/** Age at which a query of the disk is repeated, in milliseconds. */
const refresh_ms = 100

const mebibyte = 2 ** 20

export interface FreeSpace {
  /** Queries the file system, if the last query is too old. */
  readonly refresh: () => Promise<void>
  /** Bytes free on the disk, by the last query and our own writes since. */
  readonly freeBytes: () => number
  /** Length of the volume's own files, in bytes. */
  readonly ownBytes: () => number
  /** Bytes free above the floor; negative below it. */
  readonly spareBytes: () => number
  /**
   * Why a write of this many new bytes would leave less than the floor; undefined if it would not.
   */
  readonly fault: (bytes: number) => BlobFault | undefined
  /** Reserves bytes for uploads. A negative number releases them, also once they are written. */
  readonly reserve: (bytes: number) => void
  /** Bytes that are reserved for uploads and not written. */
  readonly reservedBytes: () => number
  /** True if less than half the floor is left: upkeep may use only the upper half. */
  readonly isLow: () => boolean
  readonly floor_bytes: number
}

const inMebibytes = (bytes: number) => `${Math.max(0, Math.floor(bytes / mebibyte))} MiB`

const faultOf = (free_bytes: number, floor_bytes: number): BlobFault => ({
  _tag: "BlobCapacityExceeded",
  detail:
    `The disk has ${inMebibytes(free_bytes)} free, of which ${inMebibytes(floor_bytes)} are ` +
    "reserved for the log and the read models (blob.free_floor_bytes): free space on the disk, " +
    "or delete blobs and run `almanac blobs compact` on the node to reclaim their space.",
})

/** A disk that is not monitored: only its own errors limit the volume. */
export const unmonitored: FreeSpace = {
  refresh: async () => {},
  freeBytes: () => Number.POSITIVE_INFINITY,
  ownBytes: () => 0,
  spareBytes: () => Number.POSITIVE_INFINITY,
  fault: () => undefined,
  reserve: () => {},
  reservedBytes: () => 0,
  isLow: () => false,
  floor_bytes: 0,
}

/** Bytes that writes added to files: in progress, and finished since the last query. */
const makeGrowth = () => {
  let writing_bytes = 0
  let written_bytes = 0
  return {
    bytes: () => writing_bytes + written_bytes,
    written: () => written_bytes,
    /** Subtracts writes that a query has included. */
    seen: (bytes: number) => {
      written_bytes -= bytes
    },
    during: async (bytes: number, work: Promise<void>) => {
      writing_bytes += bytes
      try {
        await work
      } finally {
        writing_bytes -= bytes
        // A failed write may have written any part.
        written_bytes += bytes
      }
    },
  }
}
type Growth = ReturnType<typeof makeGrowth>

/** A file's length, by its path: a file may be open more than once. */
interface Length {
  end: number
  is_removed: boolean
}

/** The lengths of a volume's files, and their sum. */
const makeLengths = () => {
  const lengths = new Map<string, Length>()
  let total = 0
  const set = (length: Length, end: number) => {
    if (!length.is_removed) total += end - length.end
    length.end = end
  }
  const remove = (path: string) => {
    const length = lengths.get(path)
    if (!length) return
    lengths.delete(path)
    total -= length.end
    length.is_removed = true
  }
  return {
    set,
    total: () => total,
    at: (path: string, end: number) => {
      const length = lengths.get(path) ?? { end: 0, is_removed: false }
      lengths.set(path, length)
      set(length, end)
      return length
    },
    remove,
    rename: (from: string, to: string) => {
      remove(to)
      const length = lengths.get(from)
      lengths.delete(from)
      if (length) lengths.set(to, length)
    },
  }
}
type Lengths = ReturnType<typeof makeLengths>

/** Wraps a file, to count writes after its end. */
const countWrites = (
  file: VolumeFile,
  length: Length,
  lengths: Lengths,
  growth: Growth,
): VolumeFile => ({
  ...file,
  write: (parts, position) => {
    const end = parts.reduce((sum, part) => sum + part.length, position)
    const work = file.write(parts, position)
    if (end <= length.end) return work
    const bytes = end - length.end
    lengths.set(length, end)
    return growth.during(bytes, work)
  },
  truncate: async (bytes) => {
    await file.truncate(bytes)
    if (bytes < length.end) lengths.set(length, bytes)
  },
})

const countedDisk = (disk: VolumeDisk, lengths: Lengths, growth: Growth): VolumeDisk => ({
  ...disk,
  create: async (path) =>
    countWrites(await disk.create(path), lengths.at(path, 0), lengths, growth),
  open: async (path) => {
    const file = await disk.open(path)
    return countWrites(file, lengths.at(path, await file.size()), lengths, growth)
  },
  rename: async (from, to) => {
    await disk.rename(from, to)
    lengths.rename(from, to)
  },
  remove: async (path) => {
    await disk.remove(path)
    lengths.remove(path)
  },
})

export interface FreeSpaceOptions {
  /** The volume's folder, which must exist by the first query. */
  readonly dir: string
  /** Undefined: free space is not monitored. */
  readonly floor_bytes: number | undefined
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

/** Monitors a disk: returns the gauge, and the disk through which the volume must write. */
export const monitorFreeSpace = (
  disk: VolumeDisk,
  { dir, floor_bytes, now }: FreeSpaceOptions,
): { readonly space: FreeSpace; readonly disk: VolumeDisk } => {
  if (floor_bytes === undefined) return { space: unmonitored, disk }
  const growth = makeGrowth()
  const lengths = makeLengths()
  let found_bytes = Number.POSITIVE_INFINITY
  let refreshed_at = Number.NEGATIVE_INFINITY
  let refreshing: Promise<void> | undefined
  let reserved_bytes = 0

  const query = async () => {
    const seen = growth.written()
    try {
      const { free_bytes } = await disk.space(dir)
      found_bytes = free_bytes
      growth.seen(seen)
    } finally {
      refreshed_at = now()
    }
  }
  const freeBytes = () => found_bytes - growth.bytes()
  const space: FreeSpace = {
    refresh: async () => {
      if (now() - refreshed_at < refresh_ms) return
      refreshing ??= query()
        // Keeps the last value: operations on a disk that does not respond report it themselves.
        .catch(() => undefined)
        .finally(() => {
          refreshing = undefined
        })
      await refreshing
    },
    freeBytes,
    ownBytes: lengths.total,
    spareBytes: () => freeBytes() - floor_bytes,
    fault: (bytes) =>
      freeBytes() - bytes < floor_bytes ? faultOf(freeBytes(), floor_bytes) : undefined,
    reserve: (bytes) => {
      reserved_bytes += bytes
    },
    reservedBytes: () => reserved_bytes,
    isLow: () => freeBytes() < floor_bytes / 2,
    floor_bytes,
  }
  return { space, disk: countedDisk(disk, lengths, growth) }
}
