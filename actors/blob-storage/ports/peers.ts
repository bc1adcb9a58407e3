/**
 * Peers: the port to the stores of other nodes, that is InternalService without its wire format.
 *
 * Every method rejects with a PeerFailure, an Error with a gRPC `code`: UNAVAILABLE and
 * DEADLINE_EXCEEDED if the node may be back soon; UNAUTHENTICATED; NOT_FOUND; ALREADY_EXISTS if it
 * has another shard; FAILED_PRECONDITION if it has a deletion; RESOURCE_EXHAUSTED if it is full;
 * DATA_LOSS if its copy is corrupt; INTERNAL.
 *
 * Source: document 1 §1 InternalService, §5; DECISIONS, document 1, InternalService.
 */

import type { Placement } from "#placement"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { BlobRange } from "./engine.ts"
import type { Copy, CopyOrder, HeldCopy, ReceiveResult } from "./node-engine.ts"
import type { BlobOrigin } from "./origin.ts"

export interface Peer {
  readonly node_id: string
  /** host:port */
  readonly address: string
}

/** The cluster as this node knows it. */
export interface Members {
  /** The id of this node. */
  readonly node_id: string
  readonly ring_version: number
  /** All active nodes, including this one if it is active. */
  readonly active: ReadonlyArray<Peer>
  /** Leaving nodes: they serve the copies that they still have, and receive no new ones. */
  readonly leaving: ReadonlyArray<Peer>
  /** Ids of nodes that missed their deadline and are not removed yet; never queried. */
  readonly offline?: ReadonlyArray<string>
  /**
   * Ids of leaving nodes without heartbeats: queried, and counted as offline if they do not
   * respond.
   */
  readonly unheard?: ReadonlyArray<string>
  /** Whether this node accepts no new copies and moves its own away. */
  readonly is_leaving: boolean
  /**
   * Since this time (Unix nanoseconds) no node with copies has been absent; undefined if one may
   * be.
   */
  readonly all_online_since?: bigint | undefined
  readonly placement: Placement
}

export type CopyBytes = ReadonlyArray<Uint8Array> | AsyncIterable<Uint8Array>

/** `bytes` can be iterated once; to stop early, call `return`. */
export interface Fetched {
  readonly copy: HeldCopy
  readonly meta: BlobMeta
  readonly bytes: AsyncIterableIterator<Uint8Array>
}

/** Why a copy is sent; it only affects metrics. */
export type Reason = "put" | "repair" | "migrate"

export interface Peers {
  /**
   * Sends a whole copy, or a shard if the order has one, and resolves when it is durable there. The
   * deadline limits the time in which the node accepts no bytes. After DEADLINE_EXCEEDED or
   * UNAVAILABLE the node may have the copy all the same.
   */
  readonly send: (
    peer: Peer,
    order: CopyOrder,
    bytes: CopyBytes,
    reason: Reason,
    deadline_ms: number,
  ) => Promise<ReceiveResult>
  /** Discards a copy made by an unfinished put, and only if that put created it. */
  readonly rollBack: (peer: Peer, id: BlobId, created_at: bigint) => Promise<void>
  /**
   * Sets the copy's put time like `NodeEngine.renew`, for a put whose bytes are already stored
   * there. Returns the copy after the node has read all of it; undefined if it has no valid one. A
   * node of the previous release does not read it first.
   */
  readonly renew: (
    peer: Peer,
    id: BlobId,
    put_at: bigint,
    deadline_ms: number,
  ) => Promise<HeldCopy | undefined>
  /** Deletes the copy there as part of a cluster-wide deletion. */
  readonly deleteClusterWide: (
    peer: Peer,
    id: BlobId,
    origin: BlobOrigin,
    deleted_at: bigint,
  ) => Promise<void>
  /**
   * Reads the node's copy: the blob, or its shard. The deadline limits the wait for the response
   * and then for each piece.
   */
  readonly fetch: (
    peer: Peer,
    id: BlobId,
    range: BlobRange,
    deadline_ms: number,
  ) => Promise<Fetched>
  /** The node's copy of each blob; at most 10,000 ids. */
  readonly copiesOf: (
    peer: Peer,
    ids: ReadonlyArray<BlobId>,
  ) => Promise<ReadonlyArray<Copy | undefined>>
  /**
   * Whether the node owns each blob in this ring version and keeps its copy; only then may another
   * copy be released. `is_read`: only copies that it has read and verified since. At most 10,000
   * ids.
   */
  readonly keeps: (
    peer: Peer,
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The node's current ring version. */
  readonly ringVersion: (peer: Peer) => Promise<number>
  /** One page of the node's copies like `NodeEngine.copies`, to propagate deletions. */
  readonly copies: (
    peer: Peer,
    after_id: string,
    until_id: string,
    limit: number,
  ) => Promise<{ readonly copies: ReadonlyArray<Copy>; readonly next: BlobId | undefined }>
}
