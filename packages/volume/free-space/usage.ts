/** What a volume uses of its disk and of its capacity, by what it holds. */
import type { BlobUsage } from "#actors/blob-storage/blobs/engine.ts"
import type { recover } from "../checkpoints/recovery.ts"
import type { CommitLine } from "../parts.ts"
import { makeBudget } from "./budget.ts"
import type { FreeSpace } from "./gauge.ts"

type Recovered = Pick<Awaited<ReturnType<typeof recover>>, "state" | "extents" | "index">

/** Live bytes on disk: records, extents, and the index in both checkpoints. */
export const usedBytes = ({ state, extents, index }: Recovered) =>
  state.liveBytes() +
  extents.liveBytes() +
  2 * (index.imageSize().bytes + extents.imageSize().bytes)

/** What a volume uses of its capacity. */
export const makeUsage =
  (
    recovered: Recovered,
    { capacity }: ReturnType<typeof makeBudget>,
    { space, line }: { readonly space: FreeSpace; readonly line: CommitLine },
  ) =>
  async (): Promise<BlobUsage> => {
    await space.look()
    const { state, index } = recovered
    const { blobs, shards } = index.count()
    return {
      payload_bytes: state.counters.used_bytes,
      used_bytes: usedBytes(recovered),
      blob_count: blobs + shards,
      capacity_bytes: capacity(),
      read_only: line.failed() !== undefined,
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
