/**
 * Placement of a blob's shards, and the dependencies of erasure coding.
 *
 * A shard is not tied to a position among the owners. After a ring change any node may have any
 * shard, but no node has two shards of one blob.
 *
 * Source: document 1 §2 Replication policies, EC42 and EC82; DECISIONS, document 1, placement of
 * the receiving node; decision 0124.
 */

import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { ErasureCode } from "#erasure"
import { parity_shards } from "#erasure"
import { owners_max } from "#placement"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { RollbackGuard } from "../rollback.ts"
import type { Timing } from "../timing.ts"

/** An incremental BLAKE3-256 hash. */
export interface BlobHasher {
  readonly update: (bytes: Uint8Array) => void
  /** The digest in hex, after the last update. */
  readonly digest: () => string
}

/** Size of a pooled buffer: large enough for full hashing speed, and a multiple of a unit. */
export const piece_bytes = 256 * 1024

/** A pool of buffers: allocating memory costs far more than copying into it. */
export interface PiecePool {
  /** A buffer with arbitrary contents. */
  readonly acquire: () => Uint8Array
  /**
   * Returns buffers that are no longer read. Buffers that are never returned are garbage
   * collected.
   */
  readonly release: (pieces: ReadonlyArray<Uint8Array>) => void
}

/** Dependencies of puts, gets and repairs of erasure coded blobs. */
export interface ErasureParts {
  readonly local: NodeEngine
  /** The guard through which peers, and this node's own puts, use `local`. */
  readonly guard: RollbackGuard
  readonly peers: Peers
  readonly members: () => Members
  readonly timing: Timing
  /** A cached code per number of data shards, for shards of one unit. */
  readonly openCode: (data_shards: number) => ErasureCode
  readonly hasher: () => BlobHasher
  readonly pool: PiecePool
  /** Called for a blob with missing, corrupt or unreachable shards. */
  readonly onShortfall?: (id: BlobId) => void
}

/** Delay before another node is tried instead of a silent one, in milliseconds. */
export const hedge_ms = 300
/** Timeout without progress, in milliseconds. For small puts it is the total timeout. */
export const stall_ms = 5000

/** Minimum read rate of a disk: slower ones count as failed. */
const read_bytes_per_second_min = 64 * 1024 * 1024

/** Timeout for a node that verifies its copy of a blob of this size before it responds. */
export const verifyMs = (bytes: number) =>
  stall_ms + Math.ceil((1000 * bytes) / read_bytes_per_second_min)

/** Number of data shards of the policy; undefined for policies without an erasure code. */
export const dataShardsOf = (policy: ReplicationPolicy): number | undefined => {
  if (policy === "REPLICATION_POLICY_EC42") return 4
  return policy === "REPLICATION_POLICY_EC82" ? 8 : undefined
}

/** This node as a peer. */
export const selfOf = ({ node_id, active }: Members): Peer =>
  active.find((peer) => peer.node_id === node_id) ?? { node_id, address: "" }

/** The first `count` active owners of a blob, or fewer if fewer are active. */
export const ownersOf = ({ placement, active }: Members, id: BlobId, count: number) => {
  const owners = placement.ownersOf(placement.partitionOf(id), owners_max)
  const active_of = new Map(active.map((peer) => [peer.node_id, peer]))
  return owners
    .map((node_id) => active_of.get(node_id))
    .filter((peer) => peer !== undefined)
    .slice(0, count)
}

/** Marks a node whose shard belongs to another code. */
export const useless_index = -1

/** A node and the shard that it has or will receive. */
export interface Assigned {
  readonly peer: Peer
  readonly index: number
  readonly is_held: boolean
}

/** Assigns an index to each node. Nodes with a shard keep it; surplus nodes get none. */
export const assignShards = (
  nodes: ReadonlyArray<Peer>,
  held: ReadonlyMap<string, number>,
  data_shards: number,
): ReadonlyArray<Assigned> => {
  const taken = new Set<number>()
  const kept = new Set<string>()
  for (const { node_id } of nodes) {
    const index = held.get(node_id)
    if (index === undefined || index === useless_index || taken.has(index)) continue
    taken.add(index)
    kept.add(node_id)
  }
  const free = Array.from({ length: data_shards + parity_shards }, (_, index) => index).filter(
    (index) => !taken.has(index),
  )
  const assigned: Array<Assigned> = []
  for (const peer of nodes) {
    const has = held.get(peer.node_id)
    // A node with a shard of another code cannot store a second one.
    const index = has === undefined ? free.shift() : has
    const is_held = kept.has(peer.node_id)
    if (index !== undefined && (has === undefined || is_held)) {
      assigned.push({ peer, index, is_held })
    }
  }
  return assigned
}
