/**
 * The cluster engine presents the stores of all nodes as one. A node that is alone contacts no
 * other.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0123-cluster-engine.md.
 */

import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type Failures, failureOn, makeFailures } from "./failures.ts"
import { makeGets } from "./get.ts"
import { makeList } from "./list.ts"
import { type ClusterParts, othersFor } from "./parts.ts"
import { makePuts } from "./put.ts"

export type { ClusterParts } from "./parts.ts"

export interface ClusterCounts {
  /** Copies and shards of puts that other nodes failed to store, since startup. */
  readonly replication_failures: number
  /** Puts in progress. A node that leaves waits for them. */
  readonly open_puts: number
}

/** With scope "cluster", stat, list and delete cover all nodes; without it, this node only. */
export interface ClusterEngine extends BlobEngine {
  readonly counts: () => ClusterCounts
}

/**
 * Deletes locally first, then on all other nodes in parallel. Offline nodes receive the tombstone
 * later. The deletion is at least as recent as the latest known copy, so that a clock that is ahead
 * cannot save its copies. While this node leaves, at least one other node must record the deletion.
 */
const makeDelete =
  ({ local, peers, members }: ClusterParts, { undeleted }: Failures) =>
  async (id: BlobId, origin: BlobOrigin, at: bigint) => {
    const others = othersFor(members(), id)
    const lookups = others.map((peer) => peers.copiesOf(peer, [id]).catch(() => []))
    const copies = await Promise.all([local.copiesOf([id]), ...lookups])
    let deleted_at = at
    for (const [copy] of copies) {
      if (copy === undefined || copy.kind === "tombstone") continue
      if (copy.put_at > deleted_at) deleted_at = copy.put_at
    }
    await local.deleteClusterWide(id, origin, deleted_at)
    const failures_by_node = await Promise.all(
      others.map((peer) =>
        peers.deleteClusterWide(peer, id, origin, deleted_at).then(
          () => [],
          (cause: unknown) => [failureOn(peer.node_id, cause)],
        ),
      ),
    )
    const failed = failures_by_node.flat()
    undeleted(failed)
    const is_lost = others.length > 0 && failed.length === others.length
    if (is_lost && members().is_leaving) {
      const detail =
        "This node is leaving the cluster, and no other node could be reached: retry the deletion."
      throw faultError({ _tag: "BlobUnreachable", detail })
    }
  }

/**
 * The engine over the local store and its peers. `scan`, `acknowledge` and `usage` are the local
 * ones.
 */
export const clusterEngine = (given: ClusterParts): ClusterEngine => {
  const { local, hint } = given
  const onShortfall = (id: BlobId) => hint({ id, why: "missing", nodes: [] })
  const parts: ClusterParts = { onShortfall, ...given }
  const failures = makeFailures(parts)
  const { put, upload, open } = makePuts(parts, failures)
  const reading: ClusterParts = { ...parts, members: parts.readMembers ?? parts.members }
  const { get, stat } = makeGets(reading)
  const listAll = makeList(reading)
  const deleteAll = makeDelete(parts, failures)
  return {
    put,
    upload,
    get,
    // An intact local copy is the blob, regardless of other nodes' copies.
    ...(local.getCached && { getCached: local.getCached }),
    stat: (id, scope) => (scope === "cluster" ? stat(id) : local.stat(id)),
    delete: (id, origin, at, scope) =>
      scope === "cluster" ? deleteAll(id, origin, at) : local.delete(id, origin, at),
    list: (after_id, prefix, limit, scope) =>
      scope === "cluster" ? listAll(after_id, prefix, limit) : local.list(after_id, prefix, limit),
    tombstone: local.tombstone,
    usage: local.usage,
    scan: local.scan,
    acknowledge: local.acknowledge,
    close: local.close,
    counts: () => ({ replication_failures: failures.count(), open_puts: open() }),
  }
}
