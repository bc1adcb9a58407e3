/**
 * Free space of the disk that holds a volume, and the floor that puts must leave.
 *
 * The gauge asks the file system at most once in `look_ms` and, until the next look, subtracts what
 * the volume's own writes have taken since: a put costs a few comparisons, no system call. The
 * count is never too optimistic about our own writes, and `look_ms` old about everybody else's.
 *
 * Source: DECISIONS of document 1, limits not shown; decision 0177.
 */
import type { BlobFault } from "#actors/blob-storage/blobs/fault.ts"
import type { VolumeDisk, VolumeFile } from "../disk.ts"

/** Age at which a look at the disk is repeated, in milliseconds. */
const look_ms = 100

const mebibyte = 2 ** 20

export interface FreeSpace {
  /** Asks the file system again where the last look is too old. */
  readonly look: () => Promise<void>
  /** Bytes free on the disk, by the last look and our own writes since. */
  readonly freeBytes: () => number
  /** Length of the volume's own files, in bytes. */
  readonly ownBytes: () => number
  /** Bytes free above the floor; negative below it. */
  readonly spareBytes: () => number
  /** Why a write of so many new bytes would leave less than the floor; undefined: it would not. */
  readonly fault: (bytes: number) => BlobFault | undefined
  /** Promises so many bytes more to uploads, or fewer: until they write them, or end. */
  readonly promise: (bytes: number) => void
  /** Bytes that are promised to uploads and not written. */
  readonly promisedBytes: () => number
  /** True where less than half the floor is left: upkeep may use the upper half, no more. */
  readonly isLow: () => boolean
  readonly floor_bytes: number
}

const inMebibytes = (bytes: number) => `${Math.max(0, Math.floor(bytes / mebibyte))} MiB`

const faultOf = (free_bytes: number, floor_bytes: number): BlobFault => ({
  _tag: "BlobCapacityExceeded",
  detail:
    `The disk has ${inMebibytes(free_bytes)} free, and ${inMebibytes(floor_bytes)} of them are ` +
    "reserved for the log and the read models (blob.free_floor_bytes): free space on the disk, " +
    "or delete blobs and run `almanac blobs compact` on the node to get their space back.",
})

/** A volume whose disk is not watched: only the disk's own errors limit it. */
export const unwatched: FreeSpace = {
  look: async () => {},
  freeBytes: () => Number.POSITIVE_INFINITY,
  ownBytes: () => 0,
  spareBytes: () => Number.POSITIVE_INFINITY,
  fault: () => undefined,
  promise: () => {},
  promisedBytes: () => 0,
  isLow: () => false,
  floor_bytes: 0,
}

/** Bytes that writes have added to files: under way, and done since the last look. */
const makeGrowth = () => {
  let writing_bytes = 0
  let written_bytes = 0
  return {
    bytes: () => writing_bytes + written_bytes,
    written: () => written_bytes,
    /** Forgets what a look has seen on the disk. */
    seen: (bytes: number) => {
      written_bytes -= bytes
    },
    during: async (bytes: number, work: Promise<void>) => {
      writing_bytes += bytes
      try {
        await work
      } finally {
        writing_bytes -= bytes
        // A write that failed may have taken any part of it.
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

/** The same file, whose writes beyond its end are counted. */
const counted = (
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
  create: async (path) => counted(await disk.create(path), lengths.at(path, 0), lengths, growth),
  open: async (path) => {
    const file = await disk.open(path)
    return counted(file, lengths.at(path, await file.size()), lengths, growth)
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
  /** The volume's folder, which exists by the first look. */
  readonly dir: string
  /** Undefined: the disk is not watched. */
  readonly floor_bytes: number | undefined
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Watches a disk: answers the gauge, and the disk through which the volume must write. */
export const watchFreeSpace = (
  disk: VolumeDisk,
  { dir, floor_bytes, now }: FreeSpaceOptions,
): { readonly space: FreeSpace; readonly disk: VolumeDisk } => {
  if (floor_bytes === undefined) return { space: unwatched, disk }
  const growth = makeGrowth()
  const lengths = makeLengths()
  let found_bytes = Number.POSITIVE_INFINITY
  let looked_at = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  let promised_bytes = 0

  const ask = async () => {
    const seen = growth.written()
    try {
      const { free_bytes } = await disk.space(dir)
      found_bytes = free_bytes
      growth.seen(seen)
    } finally {
      looked_at = now()
    }
  }
  const freeBytes = () => found_bytes - growth.bytes()
  const space: FreeSpace = {
    look: async () => {
      if (now() - looked_at < look_ms) return
      looking ??= ask()
        // What was found before stands: a disk that does not answer fails where it is used.
        .catch(() => undefined)
        .finally(() => {
          looking = undefined
        })
      await looking
    },
    freeBytes,
    ownBytes: lengths.total,
    spareBytes: () => freeBytes() - floor_bytes,
    fault: (bytes) =>
      freeBytes() - bytes < floor_bytes ? faultOf(freeBytes(), floor_bytes) : undefined,
    promise: (bytes) => {
      promised_bytes += bytes
    },
    promisedBytes: () => promised_bytes,
    isLow: () => freeBytes() < floor_bytes / 2,
    floor_bytes,
  }
  return { space, disk: countedDisk(disk, lengths, growth) }
}
