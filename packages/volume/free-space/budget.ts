/**
 * The capacity of a volume, and what uploads have reserved of it and of the disk.
 *
 * The capacity follows the disk: other programs may fill it, and space that they free counts again.
 * A reservation of disk space shrinks as its bytes are written, because the gauge counts them from
 * then on.
 *
 * Source: DECISIONS of document 1, several blob nodes, limits not shown; decision 0177.
 */
import { type BlobFault, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { FreeSpace } from "./gauge.ts"

/** The default capacity, as a share of the disk. The rest is for the file system itself. */
const capacity_share = 0.9

/** What a volume stores, and what uploads have reserved. */
export interface Budget {
  /** Bytes of content, without overhead. */
  readonly stored: () => number
  /** Reserves capacity and disk space, or throws BlobCapacityExceeded. */
  readonly reserve: (bytes: number, disk_bytes: number) => void
  /** Throws BlobCapacityExceeded if less than the floor is free by now. */
  readonly assertSpace: () => void
  /** Notes that reserved bytes are being written. */
  readonly wrote: (bytes: number) => void
  /** Ends a reservation, of which so many bytes were not written. */
  readonly release: (bytes: number, unwritten_bytes: number) => void
}

export interface BudgetParts {
  /** Bytes of content. */
  readonly stored: () => number
  /** Live bytes on disk: content with all overhead. */
  readonly used: () => number
  /** The configured capacity. 0: 90% of the disk. */
  readonly capacity_bytes: number
  readonly space: FreeSpace
  /** Free bytes in the extent files: writing there allocates no disk space. */
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
  /** Why a put exceeds the capacity, given the bytes already planned for the batch. */
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
