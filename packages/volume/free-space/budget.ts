/**
 * The capacity of a volume, and the parts of it and of the disk that uploads have reserved.
 *
 * The capacity follows the disk: other programs may fill it, and space that they free becomes
 * available again. A reservation of disk space shrinks as its bytes are written, because the gauge
 * counts them from then on.
 *
 * Source: DECISIONS of document 1, several blob nodes, limits not shown; decision 0177.
 */
import type { BlobUsage } from "#actors/blob-storage/ports/engine.ts"
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import type { recover } from "../checkpoints/recovery.ts"
import type { CommitQueue } from "../parts.ts"
import type { FreeSpace } from "./gauge.ts"

/** The default capacity, as a share of the disk. The rest is for the file system itself. */
const capacity_share = 0.9

/** The bytes that a volume stores and that uploads have reserved. */
export interface Budget {
  /** Bytes of content, without overhead. */
  readonly stored: () => number
  /** Reserves capacity and disk space, or throws BlobCapacityExceeded. */
  readonly reserve: (bytes: number, disk_bytes: number) => void
  /** Throws BlobCapacityExceeded if less than the floor is free now. */
  readonly assertSpace: () => void
  /** Notes that reserved bytes are being written. */
  readonly noteWritten: (bytes: number) => void
  /** Ends a reservation, of which `unwritten_bytes` were not written. */
  readonly release: (bytes: number, unwritten_bytes: number) => void
}

interface BudgetParts {
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

/** The space that the volume may use on its disk now, in bytes. */
const diskCapacity = (configured: number, space: FreeSpace) => {
  const own_bytes = space.ownBytes()
  const above_floor = own_bytes + Math.max(0, space.spareBytes())
  if (configured > 0) return Math.min(configured, above_floor)
  return Math.min(above_floor, Math.floor((own_bytes + space.freeBytes()) * capacity_share))
}

const makeBudget = ({ stored, used, capacity_bytes, space, reusable }: BudgetParts) => {
  let reserved_bytes = 0

  const capacity = () => Math.max(used(), diskCapacity(capacity_bytes, space))
  /** Why a put exceeds the capacity, given the bytes already planned for the batch. */
  const capacityFault = (bytes: number, planned_bytes = 0): BlobFault | undefined => {
    const most = diskCapacity(capacity_bytes, space)
    if (used() + reserved_bytes + planned_bytes + bytes <= most) return undefined
    return { _tag: "BlobCapacityExceeded", detail: `The store has a maximum of ${most} bytes.` }
  }
  const diskFault = (bytes: number) => {
    void space.refresh()
    const wanted = space.reservedBytes() + bytes
    if (space.fault(wanted) === undefined) return undefined
    return space.fault(Math.max(0, wanted - reusable()))
  }
  const budget: Budget = {
    stored,
    reserve: (bytes, disk_bytes) => {
      const refused = diskFault(disk_bytes) ?? capacityFault(bytes)
      if (refused) throw faultError(refused)
      reserved_bytes += bytes
      space.reserve(disk_bytes)
    },
    assertSpace: () => {
      void space.refresh()
      const refused = space.fault(0)
      if (refused) throw faultError(refused)
    },
    noteWritten: (bytes) => {
      space.reserve(-bytes)
    },
    release: (bytes, unwritten) => {
      reserved_bytes -= bytes
      space.reserve(-unwritten)
    },
  }
  return { ...budget, capacity, capacityFault }
}

type Recovered = Pick<Awaited<ReturnType<typeof recover>>, "state" | "extents" | "index">

/** Live bytes on disk: records, extents, and the index in both checkpoints. */
export const usedBytes = ({ state, extents, index }: Recovered) =>
  state.liveBytes() +
  extents.liveBytes() +
  2 * (index.imageSize().bytes + extents.imageSize().bytes)

/** The used part of a volume's capacity. */
export const makeUsage =
  (
    recovered: Recovered,
    { capacity }: ReturnType<typeof makeBudget>,
    { space, commits }: { readonly space: FreeSpace; readonly commits: CommitQueue },
  ) =>
  async (): Promise<BlobUsage> => {
    await space.refresh()
    const { state, index } = recovered
    const { blobs, shards } = index.count()
    return {
      payload_bytes: state.counters.used_bytes,
      used_bytes: usedBytes(recovered),
      blob_count: blobs + shards,
      capacity_bytes: capacity(),
      read_only: commits.failed() !== undefined,
      quarantined: state.counters.quarantined,
    }
  }

/** The budget of a volume that was opened. */
export const budgetOf = (recovered: Recovered, capacity_bytes: number, space: FreeSpace) =>
  makeBudget({
    stored: () => recovered.state.counters.used_bytes,
    used: () => usedBytes(recovered),
    capacity_bytes,
    space,
    reusable: () => recovered.extents.bytes().dead,
  })
