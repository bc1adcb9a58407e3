/**
 * Deletions that meant every node, on their way to those that were away: pure.
 *
 * Source: DECISIONS, document 1, delete and replicas; decision 0125.
 */
import type { Copy, Deletion } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/peers.ts"

/** Those that a node does not know yet, given what it has of each; not where that is younger. */
export const untold = (
  deletions: ReadonlyArray<Deletion>,
  theirs: ReadonlyArray<Copy | undefined>,
): ReadonlyArray<Deletion> =>
  deletions.filter((deletion, at) => {
    const copy = theirs[at]
    if (copy === undefined) return true
    if (copy.kind !== "tombstone") return copy.put_at <= deletion.deleted_at
    return !copy.is_cluster_wide || copy.deleted_at < deletion.deleted_at
  })

/**
 * Who is compared with in a sweep: everybody in the first after a change of the ring, since whoever
 * was away changed it by coming back; then one after the other.
 */
export const toldIn = (
  { active, leaving, node_id, is_leaving }: Members,
  round: number,
): ReadonlyArray<Peer> => {
  const others = [...active, ...leaving].filter((peer) => peer.node_id !== node_id)
  if (round <= 1 || is_leaving) return others
  const at = (round - 2) % Math.max(1, others.length)
  return others.slice(at, at + 1)
}
