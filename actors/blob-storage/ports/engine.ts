/**
 * BlobEngine: the port to one node's blob store and its journal. It uses promises rather than
 * effects, because most requests for bytes never enter Effect. A failing method rejects with an
 * Error that carries a BlobFault (`faultOf`).
 *
 * Source: document 1 §1, §4 BlobService; DESIGN, the exception: bytes.
 */
import { Context, Effect } from "effect"
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { FactShard } from "#schemas/blob-storage/shard.ts"
import { faultOf } from "./fault.ts"
import type { BlobOrigin } from "./origin.ts"

/** Where to search or delete: on this node (the default) or on every node. */
export type BlobScope = "node" | "cluster"

/** A put without its bytes. */
export interface PutOrder {
  readonly labels: BlobLabels
  readonly policy: ReplicationPolicy
  readonly origin: BlobOrigin
  readonly expected_id: BlobId | undefined
  readonly if_none_match: boolean
  /** The number of bytes, if it is certain. */
  readonly length?: number | undefined
}

/** Where a put is durable when its response is sent. */
export interface PutReceipt {
  /** The fact's cursor in this node's journal; undefined if the blob was already stored. */
  readonly cursor?: number
  /** The nodes that have a copy or a shard; undefined: only this one. */
  readonly durable_on?: ReadonlyArray<string>
}

/**
 * `created` is false if the same content was already stored. The store has then read and verified
 * it, or replaced it with the new bytes. The blob is durable in either case.
 */
export interface PutResult extends PutReceipt {
  readonly id: BlobId
  readonly meta: BlobMeta
  readonly created: boolean
}

export type OnPlaced = (answer: PutResult) => void

/** A streamed put. Callers must always call `abort`, which cleans up an unfinished put. */
export interface BlobUpload {
  /**
   * Accepts bytes, which must not change afterwards. Resolves when the next piece may be written:
   * immediately while few are in flight. An error of an earlier piece surfaces here or in `finish`.
   */
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  /** Stores the blob durably; `at` is Unix nanoseconds. */
  readonly finish: (at: bigint) => Promise<PutResult>
  /** Frees the reserved space once no write is in flight; has no effect after `finish`. */
  readonly abort: () => Promise<void>
}

/** At most `length` bytes from `offset`, truncated at the end of the blob. */
export interface BlobRange {
  readonly offset?: number
  readonly length?: number
}

/**
 * An open blob. `data` is the whole requested range if it fits in one window; otherwise `windows`
 * yields it in verified pieces of at most 983,040 bytes.
 */
export interface BlobReading {
  readonly meta: BlobMeta
  readonly data: Uint8Array | undefined
  readonly windows: () => AsyncIterableIterator<Uint8Array>
  /**
   * Recycles a window that nothing uses any more, including the socket that sent it: its memory
   * will be overwritten.
   */
  readonly recycle?: (window: Uint8Array) => void
}

export interface BlobPage {
  readonly ids: ReadonlyArray<BlobId>
  readonly has_more: boolean
  /** Where the next page starts; defaults to the last of `ids`. */
  readonly after_id?: string
}

export interface BlobUsage {
  /** Bytes of content: blobs and shards, without the store's overhead. */
  readonly payload_bytes: number
  /** Bytes on disk for stored data: content, headers, padding and index. */
  readonly used_bytes: number
  readonly blob_count: number
  /** Bytes that the store may use now, limited by configuration and free disk space. */
  readonly capacity_bytes: number
  readonly read_only: boolean
  /** Copies quarantined as corrupt or found missing since the store was created. */
  readonly quarantined: number
}

/**
 * One fact of the journal: `stored` carries labels; `quarantined` is a corrupt copy that was set
 * aside; `lost` is a copy whose file was missing; `released` is a copy that is safe on other nodes.
 * `size` is the blob's, even for a shard, whose own bytes are `shard.bytes`. `cursor` increases
 * from 1 and is never reused; `at` is Unix nanoseconds and increases with it.
 */
export interface BlobFact extends BlobOrigin {
  readonly cursor: number
  readonly kind: "stored" | "deleted" | "quarantined" | "lost" | "released"
  readonly id: BlobId
  readonly size: number
  readonly checksum: string
  readonly policy: ReplicationPolicy
  readonly shard?: FactShard
  readonly labels?: BlobLabels
  readonly at: bigint
}

/** The store of a single node ignores the scope. */
export interface BlobEngine {
  /**
   * Stores a blob whose bytes are complete, in parts that must not change afterwards. `placed` is
   * called at most once, before the put is durable, with the result if the disk accepts it.
   */
  readonly put: (
    order: PutOrder,
    parts: ReadonlyArray<Uint8Array>,
    at: bigint,
    placed?: OnPlaced,
  ) => Promise<PutResult>
  /**
   * Starts a streamed put of at most `size` bytes, if known. `order` is read only in `finish`,
   * because a message may specify it after the bytes.
   */
  readonly upload: (order: PutOrder, size: number | undefined) => BlobUpload
  readonly get: (id: BlobId, range: BlobRange, at: bigint) => Promise<BlobReading>
  /**
   * A whole verified blob, if it is available without waiting: a small one that was read recently.
   * Undefined otherwise; use `get` then.
   */
  readonly getCached?: (id: BlobId) => BlobReading | undefined
  /** The metadata of a blob, read only from the index. */
  readonly stat: (id: BlobId, scope?: BlobScope) => Promise<BlobMeta>
  /** Deletes a blob and leaves a durable tombstone, even if the blob was not stored. */
  readonly delete: (id: BlobId, origin: BlobOrigin, at: bigint, scope?: BlobScope) => Promise<void>
  /** When the blob was deleted here, in Unix nanoseconds; undefined if it was put again since. */
  readonly tombstone: (id: BlobId) => Promise<bigint | undefined>
  /** Identifiers after `after_id` with the given prefix, in byte order. */
  readonly list: (
    after_id: string,
    prefix: string,
    limit: number,
    scope?: BlobScope,
  ) => Promise<BlobPage>
  /** Used capacity, and whether the store accepts writes. */
  readonly usage: () => Promise<BlobUsage>
  /** Facts after the cursor, in commit order. */
  readonly scan: (after_cursor: number, limit: number) => Promise<ReadonlyArray<BlobFact>>
  /** Deletes facts up to this cursor, which are now recorded elsewhere. */
  readonly acknowledge: (cursor: number) => Promise<void>
  /** Waits for commits in progress, writes a checkpoint and unlocks the folder. */
  readonly close: () => Promise<void>
}

/** The engine of this process's node. */
export class Blobs extends Context.Service<Blobs, BlobEngine>()("almanac/Blobs") {}

/** Runs an engine call as an effect that fails with the rejection's fault. */
export const fromEngine = <A>(call: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: call, catch: faultOf })
