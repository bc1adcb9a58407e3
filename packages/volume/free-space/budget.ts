/**
 * The capacity of a volume, and what uploads have reserved of it and of the disk.
 *
 * The capacity follows the disk: other programs may fill it, and what they give back counts again.
 * A reservation of the disk shrinks as its bytes are written, since the gauge then counts them.
 *
 * Source: DECISIONS of document 1, several blob nodes, limits not shown; decision 0177.
 */
import { type BlobFault, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { FreeSpace } from "./gauge.ts"

/** The default capacity's part of the disk; the rest is for the file system itself. */
const capacity_share = 0.9

/** Bytes of a volume that are stored, and those that are promised to uploads. */
export interface Budget {
  /** Bytes of content, without the volume's overhead. */
  readonly stored: () => number
  /** Reserves so many bytes of capacity and of the disk, or throws BlobCapacityExceeded. */
  readonly reserve: (bytes: number, disk_bytes: number) => void
  /** Throws BlobCapacityExceeded where the disk has less than the floor free by now. */
  readonly assertSpace: () => void
  /** So many reserved bytes are on their way to the disk. */
  readonly wrote: (bytes: number) => void
  /** Ends a reservation, of which so many bytes were never written. */
  readonly release: (bytes: number, unwritten_bytes: number) => void
}

export interface BudgetParts {
  /** Bytes of content. */
  readonly stored: () => number
  /** Bytes on disk that are needed: content with all overhead. */
  readonly used: () => number
  /** The configured capacity; 0: 90% of the disk. */
  readonly capacity_bytes: number
  readonly space: FreeSpace
  /** Free bytes in the volume's own files of extents: to write them takes nothing of the disk. */
  readonly reusable: () => number
}

/** What the volume may use of its disk now, in bytes. */
const diskCapacity = (configured: number, space: FreeSpace) => {
  const own_bytes = space.ownBytes()
  const above_floor = own_bytes + Math.max(0, space.spareBytes())
  if (configured > 0) return Math.min(configured, above_floor)
  return Math.min(above_floor, Math.floor((own_bytes + space.freeBytes()) * capacity_share))
}

export const makeBudget = ({ stored, used, capacity_bytes, space, reusable }: BudgetParts) => {
  let reserved_bytes = 0

  const capacity = () => Math.max(used(), diskCapacity(capacity_bytes, space))
  /** Why the capacity has no room for so many bytes, with those of a batch so far. */
  const capacityFault = (bytes: number, planned_bytes = 0): BlobFault | undefined => {
    const most = diskCapacity(capacity_bytes, space)
    if (used() + reserved_bytes + planned_bytes + bytes <= most) return undefined
    return { _tag: "BlobCapacityExceeded", detail: `The store holds at most ${most} bytes.` }
  }
  const diskFault = (bytes: number) => {
    void space.look()
    const wanted = space.promisedBytes() + bytes
    if (space.fault(wanted) === undefined) return undefined
    return space.fault(Math.max(0, wanted - reusable()))
  }
  const budget: Budget = {
    stored,
    reserve: (bytes, disk_bytes) => {
      const refused = diskFault(disk_bytes) ?? capacityFault(bytes)
      if (refused) throw thrown(refused)
      reserved_bytes += bytes
      space.promise(disk_bytes)
    },
    assertSpace: () => {
      void space.look()
      const refused = space.fault(0)
      if (refused) throw thrown(refused)
    },
    wrote: (bytes) => {
      space.promise(-bytes)
    },
    release: (bytes, unwritten) => {
      reserved_bytes -= bytes
      space.promise(-unwritten)
    },
  }
  return {
    ...budget,
    capacity,
    capacityFault,
  }
}
