/**
 * NodeEngine: one node's store as the cluster uses it. Adds whole copies and shards from other
 * nodes, the state of any identifier, and the release of copies.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, delete and replicas.
 */
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { BlobEngine, BlobRange, BlobUpload, PutOrder } from "./engine.ts"
import type { BlobOrigin } from "./origin.ts"

/** A shard of a blob, counted from 0: data shards first, then two parity shards. */
export interface Shard {
  readonly index: number
  readonly data_shards: number
}

/** A node's copy of a blob: all of its bytes, or one shard. */
export interface HeldCopy {
  readonly kind: "whole" | "shard"
  readonly id: BlobId
  /** Size of the whole blob, even if only a shard is here. */
  readonly size: number
  /** The blob's BLAKE3-256 in hex. */
  readonly checksum: string
  readonly policy: ReplicationPolicy
  /** When the blob was first put on any node, in Unix nanoseconds; shown to users. */
  readonly created_at: bigint
  /**
   * When the same bytes were last put, as far as this copy knows; never before `created_at`. A
   * deletion covers puts up to its own time.
   */
  readonly put_at: bigint
  /** When this copy was stored, or took over the time of a later put, in Unix nanoseconds. */
  readonly stored_at: bigint
  readonly shard: Shard | undefined
}

/** A deletion that a node remembers. */
export interface Deletion {
  readonly kind: "tombstone"
  readonly id: BlobId
  /** Unix nanoseconds. */
  readonly deleted_at: bigint
  /** Whether it applies to every node, including absent ones. */
  readonly is_cluster_wide: boolean
  /** A newer deletion on this node only: puts up to this time are rejected. */
  readonly refuses_until?: bigint
}

export type Copy = HeldCopy | Deletion

export interface CopyPage {
  /** In identifier order. */
  readonly copies: ReadonlyArray<Copy>
  /** Where the next page starts; undefined on the last page. */
  readonly next: BlobId | undefined
}

/** A copy that another node sends. */
export interface CopyOrder {
  readonly id: BlobId
  /** The blob's BLAKE3-256 in hex. */
  readonly checksum: string
  /** Size of the blob. */
  readonly size: number
  readonly policy: ReplicationPolicy
  readonly labels: BlobLabels
  readonly created_at: bigint
  /** As in HeldCopy; defaults to `created_at`. */
  readonly put_at?: bigint
  readonly shard: Shard | undefined
  readonly origin: BlobOrigin
}

/**
 * `created` is false if the node already had the copy (or a whole copy instead of the shard). It
 * has then read and verified its copy, or replaced it with these bytes. An older copy takes over
 * the put time of the order.
 */
export interface ReceiveResult {
  readonly copy: HeldCopy
  readonly created: boolean
}

/**
 * An incoming copy. `finish` stores it durably. A whole copy must hash to the checksum (else
 * BlobIdMismatch), and a shard must have the length that the blob's size implies (else
 * BlobStoreFailed). A local deletion of the same age or newer rejects it with BlobDeletedHere; a
 * different local shard rejects it with BlobAlreadyExists.
 */
export interface IncomingCopy {
  /** The bytes must not change afterwards. A rejection of the copy may surface here. */
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly finish: (at: bigint) => Promise<ReceiveResult>
  readonly abort: () => Promise<void>
}

/** The bytes of a copy as stored here: the blob's, or the shard's. */
export interface CopyReading {
  readonly copy: HeldCopy
  readonly meta: BlobMeta
  readonly data: Uint8Array | undefined
  readonly windows: () => AsyncIterableIterator<Uint8Array>
}

/**
 * Bytes on this disk that belong to no blob yet; a restart discards them. Without free space they
 * are rejected, unless this node may already store the same content.
 */
export interface Staging {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  /**
   * Completes the bytes and returns their properties. They can be read repeatedly until `abort`.
   */
  readonly seal: () => Promise<StagedBytes>
  /** Frees the space; callers must always call it. */
  readonly abort: () => Promise<void>
}

export interface StagedBytes {
  readonly id: BlobId
  /** BLAKE3-256 in hex. */
  readonly checksum: string
  readonly size: number
  readonly windows: () => AsyncIterableIterator<Uint8Array>
  /**
   * Set if there was no space: the bytes were only hashed, because the content may already be
   * stored. `windows` then throws this cause.
   */
  readonly no_room?: { readonly cause: unknown }
}

/** A streamed put that may turn out to belong on other nodes. */
export interface NodeUpload extends BlobUpload {
  /** Like `Staging.seal`, instead of `finish`; callers must then call `abort`. */
  readonly seal: () => Promise<StagedBytes>
}

/**
 * For a shard, `get` fails with BlobNotFound, while `stat` and `list` include its blob. `usage`
 * counts the bytes stored here.
 */
export interface NodeEngine extends BlobEngine {
  readonly upload: (order: PutOrder, size: number | undefined) => NodeUpload
  /** The local copy of each blob; undefined if there is none or it was quarantined or released. */
  readonly copiesOf: (ids: ReadonlyArray<BlobId>) => Promise<ReadonlyArray<Copy | undefined>>
  /** Copies and deletions with `after_id` < id < `until_id`, both 32 hex digits or "". */
  readonly copies: (after_id: string, until_id: string, limit: number) => Promise<CopyPage>
  /** `bytes` is the length of the copy: the blob's size, or the shard's. */
  readonly receive: (order: CopyOrder, bytes: number) => IncomingCopy
  /** Reads and verifies the local copy; fails with BlobNotFound or BlobCorrupt like `get`. */
  readonly read: (id: BlobId, range: BlobRange, at: bigint) => Promise<CopyReading>
  readonly stage: (size: number | undefined) => Staging
  /**
   * Durably sets the local copy's put time, unless it has the same or a later one. Bytes do not
   * change, and no fact is written. Returns the local copy; undefined if there is none or it is
   * corrupt. A full disk rejects it like a put.
   */
  readonly renew: (id: BlobId, put_at: bigint, at: bigint) => Promise<HeldCopy | undefined>
  /**
   * Durably releases a copy that is safe elsewhere, with its own fact and without a deletion. False
   * if it is no longer the copy stored at `stored_at`.
   */
  readonly release: (id: BlobId, stored_at: bigint, at: bigint) => Promise<boolean>
  /**
   * Deletes the local copy and records that the deletion applies to every node. A copy that was put
   * after `deleted_at` stays, and then nothing is recorded.
   */
  readonly deleteClusterWide: (id: BlobId, origin: BlobOrigin, deleted_at: bigint) => Promise<void>
}
