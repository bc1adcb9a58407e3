/**
 * BlobStore, the port to the bytes that one node keeps, and the journal of what happened to them.
 *
 * Source: document 1 §1, §4 BlobService; DESIGN, the exception: bytes.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { BlobId, type BlobLabels, type BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { FactShard } from "#schemas/blob-storage/shard.ts"
import type { BlobOrigin } from "./admission.ts"

/** Journal facts in one scan at most: with full labels that is 16 MiB of answer. */
export const scan_limit_max = 1000

/** No blob of that identifier is here, nor on a node that could be asked. */
export class BlobNotFound extends Schema.TaggedError<BlobNotFound>()("BlobNotFound", {
  id: BlobId,
  /** Members that are offline. */
  not_asked: Schema.optionalKey(Schema.Array(Schema.String)),
}) {}

/** The copy does not match its checksums; it is out of the store by the time this is answered. */
export class BlobCorrupt extends Schema.TaggedError<BlobCorrupt>()("BlobCorrupt", {
  id: BlobId,
  detail: Schema.String,
}) {}

/** The identifier is stored, and the put asks for something that is not a repetition of it. */
export class BlobAlreadyExists extends Schema.TaggedError<BlobAlreadyExists>()(
  "BlobAlreadyExists",
  { id: BlobId, detail: Schema.String },
) {}

/** The bytes hash to another identifier than the one that the put expected. */
export class BlobIdMismatch extends Schema.TaggedError<BlobIdMismatch>()("BlobIdMismatch", {
  expected: BlobId,
  actual: BlobId,
}) {}

/** The bytes are more than one blob may hold. */
export class BlobTooLarge extends Schema.TaggedError<BlobTooLarge>()("BlobTooLarge", {
  bytes_max: Schema.Int,
}) {}

/** The store's capacity, or its disk, has no room for the bytes. */
export class BlobCapacityExceeded extends Schema.TaggedError<BlobCapacityExceeded>()(
  "BlobCapacityExceeded",
  { detail: Schema.String },
) {}

/** A sync or a commit failed once, so nothing is written any more until an operator has looked. */
export class BlobStoreReadOnly extends Schema.TaggedError<BlobStoreReadOnly>()(
  "BlobStoreReadOnly",
  { detail: Schema.String },
) {}

/** The disk or the index failed this one request. */
export class BlobStoreFailed extends Schema.TaggedError<BlobStoreFailed>()("BlobStoreFailed", {
  detail: Schema.String,
}) {}

/** An erasure code has fewer active nodes than shards. */
export class BlobTooFewNodes extends Schema.TaggedError<BlobTooFewNodes>()("BlobTooFewNodes", {
  have: Schema.Int,
  need: Schema.Int,
}) {}

/** More shards of a put could not be stored than may be lost; those that were are taken back. */
export class BlobShardsFailed extends Schema.TaggedError<BlobShardsFailed>()("BlobShardsFailed", {
  detail: Schema.String,
  /** For want of room alone. */
  is_full: Schema.Boolean,
}) {}

/** Nodes that could not be asked may have it, and none that answered does. */
export class BlobUnreachable extends Schema.TaggedError<BlobUnreachable>()("BlobUnreachable", {
  detail: Schema.String,
}) {}

export type { BlobOrigin } from "./admission.ts"

export type BlobReadError = BlobNotFound | BlobCorrupt | BlobUnreachable | BlobStoreFailed
export type BlobWriteError = BlobStoreReadOnly | BlobCapacityExceeded | BlobStoreFailed
export type BlobPutError =
  | BlobWriteError
  | BlobAlreadyExists
  | BlobIdMismatch
  | BlobTooLarge
  | BlobTooFewNodes
  | BlobShardsFailed
  | BlobUnreachable

/** Where to look or to delete: on this node, which is the default, or on every node. */
export type BlobScope = "node" | "cluster"

export interface BlobPut {
  readonly labels: BlobLabels
  readonly policy: ReplicationPolicy
  readonly origin: BlobOrigin
  readonly expected_id?: BlobId
  /** True refuses the put where the blob is stored already. */
  readonly if_none_match?: boolean
  /** How many bytes come, where that is known: room for them is taken at once. */
  readonly bytes_max?: number
}

/** Where a put's bytes are durable by the time of its answer. */
export interface PutReceipt {
  /** The fact's place in this node's journal; undefined where the blob was stored before. */
  readonly cursor?: number
  /** The nodes that have a copy or a shard; undefined: this one. */
  readonly durable_on?: ReadonlyArray<string>
}

/** What a put answers: `created` is false where the same content was stored before. */
export interface StoredBlob extends PutReceipt {
  readonly id: BlobId
  readonly size: bigint
  readonly meta: BlobMeta
  readonly created: boolean
}

/** Bytes from `offset` on, at most `length` of them; what lies past the end is left out. */
export interface BlobRange {
  readonly offset?: number
  readonly length?: number
}

/** Pieces of at most 983,040 bytes, each verified; may be run once or more, or not at all. */
export interface OpenBlob {
  readonly meta: BlobMeta
  readonly bytes: Stream.Stream<Uint8Array, BlobReadError>
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

export class BlobStore extends Context.Service<
  BlobStore,
  {
    /**
     * Stores the bytes under the first half of their BLAKE3-256, durably before it answers.
     * A stream that fails or is interrupted leaves nothing; the same content again changes nothing.
     */
    readonly put: <E, R>(
      put: BlobPut,
      bytes: Stream.Stream<Uint8Array, E, R>,
    ) => Effect.Effect<StoredBlob, E | BlobPutError, R>
    /** Opens a blob; the range's first piece, and all of a small blob, is verified by then. */
    readonly get: (id: BlobId, range?: BlobRange) => Effect.Effect<OpenBlob, BlobReadError>
    /** What is known of a blob, from the index alone. */
    readonly stat: (
      id: BlobId,
      scope?: BlobScope,
    ) => Effect.Effect<BlobMeta, BlobNotFound | BlobUnreachable | BlobStoreFailed>
    /** Removes a blob and leaves a durable tombstone, whether or not it was there. */
    readonly delete: (
      id: BlobId,
      origin: BlobOrigin,
      scope?: BlobScope,
    ) => Effect.Effect<true, BlobWriteError>
    /** When the blob was deleted here, in Unix nanoseconds, unless it was put again since. */
    readonly tombstone: (id: BlobId) => Effect.Effect<bigint | undefined, BlobStoreFailed>
    /** Identifiers in byte order, after `after_id`, that begin with `prefix`. */
    readonly list: (page: {
      readonly after_id?: BlobId
      readonly prefix?: string
      readonly limit: number
      readonly scope?: BlobScope
    }) => Effect.Effect<BlobPage, BlobUnreachable | BlobStoreFailed>
    /** What is used of the capacity, and whether the store still takes writes. */
    readonly usage: Effect.Effect<BlobUsage, BlobStoreFailed>
    /** Facts in commit order after the cursor, at most 1,000 at once. */
    readonly scan: (
      after_cursor: number,
      limit: number,
    ) => Effect.Effect<ReadonlyArray<BlobFact>, BlobStoreFailed>
    /** Lets the journal forget its facts up to this cursor: they are kept elsewhere now. */
    readonly acknowledge: (cursor: number) => Effect.Effect<void, BlobWriteError>
  }
>()("almanac/BlobStore") {}
