/**
 * BlobEngine, the store of one node without Effect: what the store's layer and direct routes both
 * stand on. A method that fails rejects with an Error that carries a BlobFault (`faultOf`).
 *
 * Source: document 1 §1, §4 BlobService; DESIGN, the exception: bytes.
 */
import { Context } from "effect"
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { BlobOrigin } from "./admission.ts"
import type { BlobFact, BlobPage, BlobRange, BlobScope, BlobUsage, PutReceipt } from "./store.ts"

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
  readonly stat: (id: BlobId, scope?: BlobScope) => Promise<BlobMeta>
  readonly delete: (id: BlobId, origin: BlobOrigin, at: bigint, scope?: BlobScope) => Promise<void>
  readonly tombstone: (id: BlobId) => Promise<bigint | undefined>
  readonly list: (
    after_id: string,
    prefix: string,
    limit: number,
    scope?: BlobScope,
  ) => Promise<BlobPage>
  readonly usage: () => Promise<BlobUsage>
  readonly scan: (after_cursor: number, limit: number) => Promise<ReadonlyArray<BlobFact>>
  readonly acknowledge: (cursor: number) => Promise<void>
  /** Waits for what is being committed, writes a checkpoint, gives the folder free. */
  readonly shut: () => Promise<void>
}

/** The engine of this process's node, for direct routes; undefined where there is none. */
export const HotEngine = Context.Reference<BlobEngine | undefined>("actors/HotEngine", {
  defaultValue: () => undefined,
})
