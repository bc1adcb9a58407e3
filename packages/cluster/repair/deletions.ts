/**
 * Selects the cluster-wide deletions to send, and the nodes to send them to. Pure.
 *
 * Source: DECISIONS, document 1, delete and replicas; decision 0125.
 */
import type { Copy, Deletion } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"

/** The deletions that a node does not know, given its copies; a later put there wins. */
export const missingDeletions = (
  deletions: ReadonlyArray<Deletion>,
  reported: ReadonlyArray<Copy | undefined>,
): ReadonlyArray<Deletion> =>
  deletions.filter((deletion, at) => {
    const copy = reported[at]
    if (copy === undefined) return true
    if (copy.kind !== "tombstone") return copy.put_at <= deletion.deleted_at
    return !copy.is_cluster_wide || copy.deleted_at < deletion.deleted_at
  })

/**
 * The nodes to compare deletions with in this sweep: all nodes in the first sweep after a ring
 * change, because a node that was offline changes the ring when it returns; after that one per
 * sweep, in turn.
 */
export const deletionTargets = (
  { active, leaving, node_id, is_leaving }: Members,
  sweep_number: number,
): ReadonlyArray<Peer> => {
  const others = [...active, ...leaving].filter((peer) => peer.node_id !== node_id)
  if (sweep_number <= 1 || is_leaving) return others
  const at = (sweep_number - 2) % Math.max(1, others.length)
  return others.slice(at, at + 1)
}
