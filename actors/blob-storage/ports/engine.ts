/**
 * BlobEngine, the port to the bytes that one node keeps and to the journal of their changes. It has
 * promises instead of effects, because most requests for bytes never enter Effect. A method that
 * fails rejects with an Error that carries a BlobFault (`faultOf`).
 *
 * Source: document 1 §1, §4 BlobService; DESIGN, the exception: bytes.
 */
import { Context, Effect } from "effect"
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { FactShard } from "#schemas/blob-storage/shard.ts"
import type { BlobOrigin } from "./admission.ts"
import { faultOf } from "./fault.ts"

/** Where to look or to delete: on this node, which is the default, or on every node. */
export type BlobScope = "node" | "cluster"

/** A put without its bytes. */
export interface PutOrder {
  readonly labels: BlobLabels
  readonly policy: ReplicationPolicy
  readonly origin: BlobOrigin
  readonly expected_id: BlobId | undefined
  readonly if_none_match: boolean
  /** How many bytes come, where that is certain. */
  readonly length?: number | undefined
}

/** Where a put's bytes are durable by the time of its answer. */
export interface PutReceipt {
  /** The fact's place in this node's journal; undefined where the blob was stored before. */
  readonly cursor?: number
  /** The nodes that have a copy or a shard; undefined: this one. */
  readonly durable_on?: ReadonlyArray<string>
}

/**
 * `created` is false where the same content was stored before: all of that was read, and is sound,
 * or has the new bytes by now. It is durable in either case.
 */
export interface PutAnswer extends PutReceipt {
  readonly id: BlobId
  readonly meta: BlobMeta
  readonly created: boolean
}

export type Placed = (answer: PutAnswer) => void

/** A put whose bytes come piece by piece; `abort` in any case ends it and leaves nothing. */
export interface BlobUpload {
  /**
   * Takes the bytes, which must not change any more. Resolves when the next piece may come: at
   * once while few are under way. A fault of an earlier piece is thrown here or by `finish`.
   */
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  /** Stores the blob durably; `at` is Unix nanoseconds. */
  readonly finish: (at: bigint) => Promise<PutAnswer>
  /** Gives its room back once nothing of it is under way; after `finish` it does nothing. */
  readonly abort: () => Promise<void>
}

/** Bytes from `offset` on, at most `length` of them; what lies past the end is left out. */
export interface BlobRange {
  readonly offset?: number
  readonly length?: number
}

/**
 * An open blob. `data` is all of the asked range where it is one window or less; else it comes from
 * `windows`, each of at most 983,040 bytes and verified before it is handed out.
 */
export interface BlobReading {
  readonly meta: BlobMeta
  readonly data: Uint8Array | undefined
  readonly windows: () => AsyncIterableIterator<Uint8Array>
  /**
   * May be told of a window that nobody looks at any more, also not the system that sends it: other
   * bytes are read into it then.
   */
  readonly giveBack?: (window: Uint8Array) => void
}

export interface BlobPage {
  readonly ids: ReadonlyArray<BlobId>
  readonly has_more: boolean
  /** What the next page comes after; the last of `ids`, unless given. */
  readonly after_id?: string
}

export interface BlobUsage {
  /** Bytes of content: blobs and shards, without the store's overhead. */
  readonly payload_bytes: number
  /** Bytes on disk that the store needs for what it holds: content, headers, padding and index. */
  readonly used_bytes: number
  readonly blob_count: number
  /** Bytes that the store may use now, by configuration and by what its disk has free. */
  readonly capacity_bytes: number
  readonly read_only: boolean
  /** Copies that were set aside as corrupt or found missing since the store was made. */
  readonly quarantined: number
}

/**
 * One fact of the journal: `stored` carries labels; `quarantined` is a copy set aside as corrupt;
 * `lost` is one whose file was gone; `released` is one that is safe on other nodes. `size` is the
 * blob's, also where only a shard is meant, whose bytes here are `shard.bytes`. `cursor` rises from
 * 1 and is never used again; `at` is Unix nanoseconds and rises with it.
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

/** The store of one node knows no other: to it the scope is the same in either case. */
export interface BlobEngine {
  /**
   * A put whose bytes are all there, in parts that must not change any more. `placed` may be told,
   * once at most, what will be answered if the disk takes it, before it is durable.
   */
  readonly put: (
    order: PutOrder,
    parts: ReadonlyArray<Uint8Array>,
    at: bigint,
    placed?: Placed,
  ) => Promise<PutAnswer>
  /**
   * Begins a put by pieces, of `size` bytes at most, where that is known. `order` is looked at when
   * it finishes: a message may say behind its bytes what is to be done with them.
   */
  readonly upload: (order: PutOrder, size: number | undefined) => BlobUpload
  readonly get: (id: BlobId, range: BlobRange, at: bigint) => Promise<BlobReading>
  /**
   * All of a blob, verified, where that takes no waiting: a small one that was read lately.
   * Undefined in any other case, whatever it is: `get` answers it.
   */
  readonly getNow?: (id: BlobId) => BlobReading | undefined
  /** What is known of a blob, from the index alone. */
  readonly stat: (id: BlobId, scope?: BlobScope) => Promise<BlobMeta>
  /** Removes a blob and leaves a durable tombstone, whether or not the blob was stored. */
  readonly delete: (id: BlobId, origin: BlobOrigin, at: bigint, scope?: BlobScope) => Promise<void>
  /** When the blob was deleted here, in Unix nanoseconds, unless it was put again since. */
  readonly tombstone: (id: BlobId) => Promise<bigint | undefined>
  /** Identifiers in byte order, after `after_id`, that begin with `prefix`. */
  readonly list: (
    after_id: string,
    prefix: string,
    limit: number,
    scope?: BlobScope,
  ) => Promise<BlobPage>
  /** What is used of the capacity, and whether the store still takes writes. */
  readonly usage: () => Promise<BlobUsage>
  /** Facts in commit order after the cursor. */
  readonly scan: (after_cursor: number, limit: number) => Promise<ReadonlyArray<BlobFact>>
  /** Lets the journal forget its facts up to this cursor: they are kept elsewhere now. */
  readonly acknowledge: (cursor: number) => Promise<void>
  /** Waits for what is being committed, writes a checkpoint, gives the folder free. */
  readonly shut: () => Promise<void>
}

/** The engine of this process's node. */
export class Blobs extends Context.Service<Blobs, BlobEngine>()("almanac/Blobs") {}

/** Awaits the engine within an effect, which fails with the fault that a rejection carries. */
export const fromEngine = <A>(ask: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: ask, catch: faultOf })
