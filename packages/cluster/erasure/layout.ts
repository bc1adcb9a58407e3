/**
 * Where a blob's shards belong, and what erasure coding stands on.
 *
 * A shard is not tied to a place among the owners. After a change of the ring any node may have any
 * shard, but never two of one blob.
 *
 * Source: document 1 §2 Replication policies, EC42 and EC82; DECISIONS, document 1, placement of
 * the receiving node; decision 0124.
 */

import type { NodeEngine } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peer, Peers } from "#actors/blob-storage/peers.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import type { ErasureCode } from "#erasure"
import { parity_shards } from "#erasure"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { TakeBackGuard } from "../take-back.ts"
import type { Timing } from "../timing.ts"

/** BLAKE3-256 of bytes that come one after the other. */
export interface BlobHasher {
  readonly update: (bytes: Uint8Array) => void
  /** In hex, once all bytes have come. */
  readonly digest: () => string
}

/** Bytes of a piece of memory: hashes have their full speed on it, and units fit it whole. */
export const piece_bytes = 256 * 1024

/** Memory that is used again: new memory costs far more than what is copied into it. */
export interface PieceMemory {
  /** A piece, which holds anything. */
  readonly take: () => Uint8Array
  /** Nobody reads these any more. Who cannot say so keeps them, and they are collected. */
  readonly giveBack: (pieces: ReadonlyArray<Uint8Array>) => void
}

/** What erasure coded blobs are put, read and repaired with. */
export interface ErasureParts {
  readonly local: NodeEngine
  /** What this node tells others of `local`, and this node's own puts too. */
  readonly guard: TakeBackGuard
  readonly peers: Peers
  readonly members: () => Members
  readonly timing: Timing
  /** One code for each number of data shards, with room for shards of one unit. */
  readonly openCode: (data_shards: number) => ErasureCode
  readonly hasher: () => BlobHasher
  readonly memory: PieceMemory
  /** A blob of which shards are missing, corrupt or cannot be had was met. */
  readonly onShortfall?: (id: BlobId) => void
}

/** How long a node that says nothing holds up what others could do as well, in milliseconds. */
export const hedge_ms = 300
/** No progress for so long is a failure, in milliseconds: small puts have as much in all. */
export const stall_ms = 5000

/** A disk that reads less of a blob in a second is waited for no longer than one that is gone. */
const read_bytes_per_second_min = 64 * 1024 * 1024

/** How long a node may say nothing that first reads its copy of a blob of so many bytes. */
export const readingMs = (bytes: number) =>
  stall_ms + Math.ceil((1000 * bytes) / read_bytes_per_second_min)

/** Data shards of a blob of that policy; undefined where it is not erasure coded. */
export const dataShardsOf = (policy: ReplicationPolicy): number | undefined => {
  if (policy === "REPLICATION_POLICY_EC42") return 4
  return policy === "REPLICATION_POLICY_EC82" ? 8 : undefined
}

/** This node as one of them. */
export const selfOf = ({ node_id, active }: Members): Peer =>
  active.find((peer) => peer.node_id === node_id) ?? { node_id, address: "" }

/** The first `count` active owners of a blob: fewer where fewer are active. */
export const ownersOf = ({ placement, active }: Members, id: BlobId, count: number) => {
  const owners = placement.ownersOf(placement.partitionOf(id), owners_max)
  const active_of = new Map(active.map((peer) => [peer.node_id, peer]))
  return owners
    .map((node_id) => active_of.get(node_id))
    .filter((peer) => peer !== undefined)
    .slice(0, count)
}

/** Of a node that has a shard which is of no use. */
export const no_index = -1

/** A node, and which shard it has or is to have. */
export interface Assigned {
  readonly peer: Peer
  readonly index: number
  readonly is_held: boolean
}

/** Which index each node is to have: those that have one keep it. Nodes in excess have none. */
export const assignShards = (
  nodes: ReadonlyArray<Peer>,
  held: ReadonlyMap<string, number>,
  data_shards: number,
): ReadonlyArray<Assigned> => {
  const taken = new Set<number>()
  const kept = new Set<string>()
  for (const { node_id } of nodes) {
    const index = held.get(node_id)
    if (index === undefined || index === no_index || taken.has(index)) continue
    taken.add(index)
    kept.add(node_id)
  }
  const free = Array.from({ length: data_shards + parity_shards }, (_, index) => index).filter(
    (index) => !taken.has(index),
  )
  const assigned: Array<Assigned> = []
  for (const peer of nodes) {
    const has = held.get(peer.node_id)
    // A node that has one which is of no use cannot take another.
    const index = has === undefined ? free.shift() : has
    const is_held = kept.has(peer.node_id)
    if (index !== undefined && (has === undefined || is_held)) {
      assigned.push({ peer, index, is_held })
    }
  }
  return assigned
}
