/**
 * Copies that a node did not take since it was told to delete them. What it says of itself may be
 * older than why it refuses: of two deletions it tells the one that every node is to learn of.
 *
 * Forgotten with the process, and when there are too many: then the node is asked again.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Copy } from "./node-engine.ts"

/** Refusals that are remembered: some 2 MB. */
const refusals_max = 10_000

export const makeRefusals = () => {
  /** As of when the blob was that was refused, by node and blob. */
  const refused = new Map<string, bigint>()
  const keyOf = (node_id: string, id: BlobId) => `${id} ${node_id}`
  return {
    note: (node_id: string, id: BlobId, created_at: bigint) => {
      if (refused.size >= refusals_max) refused.clear()
      refused.set(keyOf(node_id, id), created_at)
    },
    /** What a node said, with what it does not say: that it deleted the blob later. */
    told: (node_id: string, id: BlobId, copy: Copy | undefined): Copy | undefined => {
      const created_at = refused.size === 0 ? undefined : refused.get(keyOf(node_id, id))
      if (created_at === undefined) return copy
      if (copy === undefined) {
        return { kind: "tombstone", id, deleted_at: created_at, is_cluster_wide: false }
      }
      if (copy.kind !== "tombstone" || copy.deleted_at >= created_at) return copy
      // The one that meant every node is older than the blob, and so it means nothing here.
      return { ...copy, deleted_at: created_at, is_cluster_wide: false }
    },
  }
}

export type Refusals = ReturnType<typeof makeRefusals>
