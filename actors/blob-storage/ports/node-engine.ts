/**
 * NodeEngine, the store of one node as the cluster sees it: whole copies and shards that other
 * nodes made, what is known of any identifier, and copies that are let go.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, delete and replicas.
 */
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { BlobOrigin } from "./admission.ts"
import type { BlobEngine, BlobRange, BlobUpload, PutOrder } from "./engine.ts"

/** Which shard of a blob: from 0, the data's first and then two of parity. */
export interface Shard {
  readonly index: number
  readonly data_shards: number
}

/** A blob of which a node has all bytes, or one shard. */
export interface HeldCopy {
  readonly kind: "whole" | "shard"
  readonly id: BlobId
  /** Bytes of the blob, whatever part of it is here. */
  readonly size: number
  /** The blob's BLAKE3-256 in hex. */
  readonly checksum: string
  readonly policy: ReplicationPolicy
  /** When the blob was first put, on whichever node, in Unix nanoseconds: what users are shown. */
  readonly created_at: bigint
  /**
   * When the same bytes were put last, as far as this copy was told; never before `created_at`.
   * Deletions take what was put until then.
   */
  readonly put_at: bigint
  /** When this copy came here, or took over a later put's time, in Unix nanoseconds. */
  readonly stored_at: bigint
  readonly shard: Shard | undefined
}

/** A deletion that a node remembers. */
export interface Deletion {
  readonly kind: "tombstone"
  readonly id: BlobId
  /** Unix nanoseconds. */
  readonly deleted_at: bigint
  /** Whether every node was meant, also one that was away. */
  readonly is_cluster_wide: boolean
  /** Where one of this node alone is younger still: it refuses what was put until then. */
  readonly refuses_until?: bigint
}

export type Copy = HeldCopy | Deletion

export interface CopyPage {
  /** In the order of their identifiers. */
  readonly copies: ReadonlyArray<Copy>
  /** The identifier to go on after; undefined where nothing follows. */
  readonly next: BlobId | undefined
}

/** A copy that another node sends. */
export interface CopyOrder {
  readonly id: BlobId
  /** The blob's BLAKE3-256 in hex. */
  readonly checksum: string
  /** Bytes of the blob. */
  readonly size: number
  readonly policy: ReplicationPolicy
  readonly labels: BlobLabels
  readonly created_at: bigint
  /** As a held copy's; `created_at` unless given. */
  readonly put_at?: bigint
  readonly shard: Shard | undefined
  readonly origin: BlobOrigin
}

/**
 * `created` is false where the node had the copy, or a whole one in the place of a shard, and has
 * read it, or has these bytes in its place now. That took over the time of the order's put, where
 * it was of an older one.
 */
export interface Received {
  readonly copy: HeldCopy
  readonly created: boolean
}

/**
 * A copy on its way in. `finish` stores it durably: a whole one only if its bytes hash to the
 * checksum (BlobIdMismatch), a shard only if it is as long as the blob's size wants
 * (BlobStoreFailed). A deletion here that is as old as the blob, or younger, refuses it with
 * BlobDeletedHere; a shard here, unless it is the same one, with BlobAlreadyExists.
 */
export interface Receiving {
  /** As an upload's: the bytes must not change any more. What refuses the copy may say so here. */
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly finish: (at: bigint) => Promise<Received>
  readonly abort: () => Promise<void>
}

/** The bytes of a copy as they lie here: the blob's, or the shard's. */
export interface CopyReading {
  readonly copy: HeldCopy
  readonly meta: BlobMeta
  readonly data: Uint8Array | undefined
  readonly windows: () => AsyncIterableIterator<Uint8Array>
}

/**
 * Bytes that are on this disk, and belong to no blob yet. A restart forgets them. Those that have
 * no room are refused, unless they may be stored already, as far as this node can know.
 */
export interface Staging {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  /** All bytes have come: what they are. They can be read again and again until `abort`. */
  readonly seal: () => Promise<StagedBytes>
  /** Gives the room back; in any case to be called. */
  readonly abort: () => Promise<void>
}

export interface StagedBytes {
  readonly id: BlobId
  /** BLAKE3-256 in hex. */
  readonly checksum: string
  readonly size: number
  readonly windows: () => AsyncIterableIterator<Uint8Array>
  /**
   * Why the bytes are not here: there is no room, and they were hashed alone since they may be
   * those of a blob that is stored already. `windows` throws it.
   */
  readonly no_room?: { readonly cause: unknown }
}

/** A put by pieces whose bytes may turn out to be no put of this node. */
export interface NodeUpload extends BlobUpload {
  /** As `Staging` has it, in the place of `finish`; then only `abort`, in any case. */
  readonly seal: () => Promise<StagedBytes>
}

/**
 * Of a shard `get` says BlobNotFound, while `stat` and `list` show its blob. `usage` counts the
 * bytes that are here.
 */
export interface NodeEngine extends BlobEngine {
  readonly upload: (order: PutOrder, size: number | undefined) => NodeUpload
  /** What is here of each: undefined is nothing, or a copy that was set aside or let go. */
  readonly copiesOf: (ids: ReadonlyArray<BlobId>) => Promise<ReadonlyArray<Copy | undefined>>
  /** Copies and deletions with `after_id` < id < `until_id`, both 32 hex digits or "". */
  readonly copies: (after_id: string, until_id: string, limit: number) => Promise<CopyPage>
  /** `bytes` are those of the copy: the blob's size, or the shard's. */
  readonly receive: (order: CopyOrder, bytes: number) => Receiving
  /** Reads what lies here, verified; BlobNotFound, BlobCorrupt as `get`. */
  readonly read: (id: BlobId, range: BlobRange, at: bigint) => Promise<CopyReading>
  readonly stage: (size: number | undefined) => Staging
  /**
   * Makes what is here a copy of the put of that time, durably, unless it is one of that or a later
   * put: the same bytes, and no fact. Answers what is here; undefined where nothing is, also where
   * the copy turns out corrupt. Refused as a put is where the disk is full.
   */
  readonly renew: (id: BlobId, put_at: bigint, at: bigint) => Promise<HeldCopy | undefined>
  /**
   * Lets a copy go that is safe elsewhere: durably, with a fact of its own, without a deletion.
   * False where the copy is not the one that came at `stored_at` any more.
   */
  readonly release: (id: BlobId, stored_at: bigint, at: bigint) => Promise<boolean>
  /**
   * Deletes here, and remembers that every node was meant; a copy that was put after `deleted_at`
   * stays, and then nothing is remembered.
   */
  readonly deleteClusterWide: (id: BlobId, origin: BlobOrigin, deleted_at: bigint) => Promise<void>
}
