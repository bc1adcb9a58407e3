/**
 * Peers, the port to the other nodes' stores: InternalService without its wire.
 *
 * Every method rejects with a PeerFailure, an Error with a `code` of gRPC's: UNAVAILABLE and
 * DEADLINE_EXCEEDED where the node may be back soon; UNAUTHENTICATED; NOT_FOUND; ALREADY_EXISTS
 * where it has another shard; FAILED_PRECONDITION where it has a deletion; RESOURCE_EXHAUSTED where
 * it is full; DATA_LOSS where its copy is corrupt; INTERNAL.
 *
 * Source: document 1 §1 InternalService, §5; DECISIONS, document 1, InternalService.
 */

import type { Placement } from "#placement"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { BlobOrigin } from "./admission.ts"
import type { BlobRange } from "./engine.ts"
import type { Copy, CopyOrder, HeldCopy, Received } from "./node-engine.ts"

/** An active node. */
export interface Peer {
  readonly node_id: string
  /** host:port */
  readonly address: string
}

/** The cluster as this node knows it now. */
export interface Members {
  /** This node. */
  readonly node_id: string
  readonly ring_version: number
  /** All that are active, with this one where it is. */
  readonly active: ReadonlyArray<Peer>
  /** Those that leave: asked for what they still have, and given nothing more. */
  readonly leaving: ReadonlyArray<Peer>
  /** The names of those that are silent past their deadline and not removed yet: never asked. */
  readonly offline?: ReadonlyArray<string>
  /** The names of those that leave and are not heard: asked, and counted as offline if silent. */
  readonly unheard?: ReadonlyArray<string>
  /** Whether this node takes no new copies and moves those that it has. */
  readonly is_leaving: boolean
  /**
   * A time in Unix nanoseconds since when no node is away that may have copies; undefined: one may.
   */
  readonly whole_since?: bigint | undefined
  readonly placement: Placement
}

export type CopyBytes = ReadonlyArray<Uint8Array> | AsyncIterable<Uint8Array>

/** `bytes` run once; whoever stops reading early ends them with `return`. */
export interface Fetched {
  readonly copy: HeldCopy
  readonly meta: BlobMeta
  readonly bytes: AsyncIterableIterator<Uint8Array>
}

/** Why a copy is sent: only what is counted differs. */
export type Reason = "put" | "repair" | "migrate"

export interface Peers {
  /**
   * Sends a whole copy, or a shard where the order has one; durable there when it is answered. The
   * deadline is of the time in which the node takes no bytes. After DEADLINE_EXCEEDED and
   * UNAVAILABLE the copy may be there all the same.
   */
  readonly send: (
    peer: Peer,
    order: CopyOrder,
    bytes: CopyBytes,
    reason: Reason,
    deadline_ms: number,
  ) => Promise<Received>
  /** Takes a copy back that an unfinished put had made, and only if it came with that put. */
  readonly takeBack: (peer: Peer, id: BlobId, created_at: bigint) => Promise<void>
  /**
   * Makes what lies there a copy of the put of that time, as `renew` of its engine: for one that
   * found its bytes stored. Answers what lies there, once all of it was read; undefined where
   * nothing sound does. A node of the release before has not read it.
   */
  readonly renew: (
    peer: Peer,
    id: BlobId,
    put_at: bigint,
    deadline_ms: number,
  ) => Promise<HeldCopy | undefined>
  /** Deletes there because every node is meant. */
  readonly deleteClusterWide: (
    peer: Peer,
    id: BlobId,
    origin: BlobOrigin,
    deleted_at: bigint,
  ) => Promise<void>
  /**
   * Reads what lies there: the blob, or the shard that the node has. The deadline is of the wait
   * for the answer, and then for each of its pieces.
   */
  readonly fetch: (
    peer: Peer,
    id: BlobId,
    range: BlobRange,
    deadline_ms: number,
  ) => Promise<Fetched>
  /** What lies there of each, at most 10,000. */
  readonly have: (
    peer: Peer,
    ids: ReadonlyArray<BlobId>,
  ) => Promise<ReadonlyArray<Copy | undefined>>
  /**
   * Whether the node is an owner of each by a ring of that version, and keeps what it has: the word
   * on which another copy may be let go. `is_read`: only what it has read anew, and is sound. At
   * most 10,000.
   */
  readonly keeps: (
    peer: Peer,
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The version of the ring that the node knows now. */
  readonly ringVersion: (peer: Peer) => Promise<number>
  /** One page of a node's list, as `copies` of its engine: for deletions that are to spread. */
  readonly copies: (
    peer: Peer,
    after_id: string,
    until_id: string,
    limit: number,
  ) => Promise<{ readonly copies: ReadonlyArray<Copy>; readonly next: BlobId | undefined }>
}
