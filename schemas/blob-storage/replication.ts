/**
 * The requirements of replication policies on the cluster.
 *
 * Source: document 1 §2 Replication policies, §7 FAILED_PRECONDITION, §8 Limits; DECISIONS,
 * document 1, replica count not reachable.
 */
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { FailedPrecondition } from "#schemas/blob-storage/rejection.ts"

/** Document 1 §8: number of active nodes that each policy needs. */
export const nodes_needed: Readonly<Record<ReplicationPolicy, number>> = {
  REPLICATION_POLICY_UNSPECIFIED: 3,
  REPLICATION_POLICY_NONE: 1,
  REPLICATION_POLICY_REPLICA2: 2,
  REPLICATION_POLICY_REPLICA3: 3,
  REPLICATION_POLICY_EC42: 6,
  REPLICATION_POLICY_EC82: 10,
}

const erasure_codes: ReadonlySet<ReplicationPolicy> = new Set([
  "REPLICATION_POLICY_EC42",
  "REPLICATION_POLICY_EC82",
])

/** Whether a policy splits blobs into shards. */
export const isErasureCode = (policy: ReplicationPolicy) => erasure_codes.has(policy)

/** The error text if a cluster is too small for an erasure code. Source: document 1 §7. */
export const tooFewNodes = (have: number, need: number) =>
  new FailedPrecondition({ detail: `not enough nodes for EC (have ${have}, need ${need})` })

/**
 * Why too few nodes reject a put; undefined if they do not. Only erasure codes are rejected:
 * missing replicas are created when nodes join.
 */
export const refusedPolicy = (policy: ReplicationPolicy, active_nodes: number) => {
  const needed = nodes_needed[policy]
  return isErasureCode(policy) && active_nodes < needed
    ? tooFewNodes(active_nodes, needed)
    : undefined
}
