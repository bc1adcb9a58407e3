/**
 * The cluster engine: this node's store and the other nodes' as one. A node that is alone asks no
 * other.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0123-cluster-engine.md.
 */

import type { BlobOrigin } from "#actors/blob-storage/blobs/admission.ts"
import type { BlobEngine } from "#actors/blob-storage/blobs/engine.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type Failures, failedOn, makeFailures } from "./failures.ts"
import { makeGets } from "./get.ts"
import { makeList } from "./list.ts"
import { type ClusterParts, othersFor } from "./parts.ts"
import { makePuts } from "./put.ts"

export type { ClusterParts } from "./parts.ts"

export interface ClusterCounts {
  /** Copies and shards of puts that other nodes could not take, since the start. */
  readonly replication_failures: number
  /** Puts that are being stored at this moment: a leave waits for their end. */
  readonly open_puts: number
}

/** Its scope "cluster" is all nodes; without it stat, list and delete are this node's alone. */
export interface ClusterEngine extends BlobEngine {
  readonly counts: () => ClusterCounts
}

/**
 * Deletes here first, then everywhere at once. Who cannot be reached learns of it later, from the
 * tombstone. The deletion is as young as the youngest copy that is known: a clock that is ahead
 * must not save its copies. Where this node leaves, one that stays has to know of it.
 */
const makeDelete =
  ({ local, peers, members }: ClusterParts, { undeleted }: Failures) =>
  async (id: BlobId, origin: BlobOrigin, at: bigint) => {
    const others = othersFor(members(), id)
    const asked = others.map((peer) => peers.have(peer, [id]).catch(() => []))
    const answers = await Promise.all([local.copiesOf([id]), ...asked])
    let deleted_at = at
    for (const [copy] of answers) {
      if (copy === undefined || copy.kind === "tombstone") continue
      if (copy.put_at > deleted_at) deleted_at = copy.put_at
    }
    await local.deleteClusterWide(id, origin, deleted_at)
    const told = await Promise.all(
      others.map((peer) =>
        peers.deleteClusterWide(peer, id, origin, deleted_at).then(
          () => [],
          (cause: unknown) => [failedOn(peer.node_id, cause)],
        ),
      ),
    )
    const failed = told.flat()
    undeleted(failed)
    const is_lost = others.length > 0 && failed.length === others.length
    if (is_lost && members().is_leaving) {
      const detail = "This node is leaving the cluster, and no other could be told: delete again."
      throw thrown({ _tag: "BlobUnreachable", detail })
    }
  }

/** This node's store in its cluster. The journal and the usage stay this node's. */
export const clusterEngine = (given: ClusterParts): ClusterEngine => {
  const { local, hint } = given
  const onShortfall = (id: BlobId) => hint({ id, why: "missing", nodes: [] })
  const parts: ClusterParts = { onShortfall, ...given }
  const failures = makeFailures(parts)
  const { put, upload, open } = makePuts(parts, failures)
  const reading: ClusterParts = { ...parts, members: parts.asked ?? parts.members }
  const { get, stat } = makeGets(reading)
  const listAll = makeList(reading)
  const deleteAll = makeDelete(parts, failures)
  return {
    put,
    upload,
    get,
    // A copy that is here and holds is the blob, whoever else has one.
    ...(local.getNow && { getNow: local.getNow }),
    stat: (id, scope) => (scope === "cluster" ? stat(id) : local.stat(id)),
    delete: (id, origin, at, scope) =>
      scope === "cluster" ? deleteAll(id, origin, at) : local.delete(id, origin, at),
    list: (after_id, prefix, limit, scope) =>
      scope === "cluster" ? listAll(after_id, prefix, limit) : local.list(after_id, prefix, limit),
    tombstone: local.tombstone,
    usage: local.usage,
    scan: local.scan,
    acknowledge: local.acknowledge,
    shut: local.shut,
    counts: () => ({ replication_failures: failures.count(), open_puts: open() }),
  }
}
