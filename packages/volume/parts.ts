/**
 * The interfaces between the parts of a volume; types only. The engine creates the parts and passes
 * each the ones it needs.
 */

import type { CopyOrder } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import type { makeIndex, Place } from "./blob-index/blob-index.ts"
import type { VolumeDisk, VolumeFile } from "./disk.ts"
import type { Budget } from "./free-space/budget.ts"
import type { FreeSpace } from "./free-space/gauge.ts"
import type { SegmentKind } from "./log/format.ts"
import type { BlobTail, Extent, NewRecord, RecordHead } from "./log/record.ts"
import type { Renewed } from "./log/record-facts.ts"
import type { OfferedBlob } from "./writes/put-admission.ts"

export type Index = ReturnType<typeof makeIndex>

/** Limits derived from the engine's options. */
export interface VolumeLimits {
  readonly size_max_bytes: number
  readonly segment_bytes: number
  /** Smaller blobs are stored inline in the log: 256 KiB, or an eighth of a very small segment. */
  readonly inline_bytes_max: number
}

/** A file of the volume, open as long as the volume is. */
export interface Segment {
  readonly kind: SegmentKind
  /** From 1, per kind. A recycled file keeps its number and gets a new generation. */
  readonly number: number
  readonly generation: number
  readonly bytes: number
  /** Length when the file was taken into use. A log file is preallocated to `bytes`. */
  readonly written_bytes: number
  /** Initial value of every checksum in the file. */
  readonly seed: number
  /** Format of the file's records, from the superblock: one of `formats`. It only rises. */
  format: number
  readonly file: VolumeFile
}

export interface Segments {
  /** The file with this number, possibly damaged. Undefined if it is spare or does not exist. */
  readonly find: (kind: SegmentKind, number: number) => Segment | undefined
  /** The files in use, in no particular order. */
  readonly all: (kind: SegmentKind) => ReadonlyArray<Segment>
  /**
   * Takes a file with space for `bytes` of data: a spare one or a new one. A log file is filled
   * with zeros; an extent file allocates disk space only as it is written. Rejects with the disk's
   * error, ENOSPC if it is full.
   */
  readonly take: (kind: SegmentKind, bytes: number) => Promise<Segment>
  /**
   * Takes a file out of use. A log file is recycled under a new generation if there are fewer than
   * `spare_max` spare ones; any other file is removed. Nothing durable may still refer to the file
   * (`VolumeParts.checkpoint`).
   */
  readonly retire: (segment: Segment, spare_max?: number) => Promise<void>
}

/** A put whose content is complete. */
export interface PutOperation extends OfferedBlob {
  readonly kind: "put"
  /** BLAKE3-256 in hex; `checksum` is the same in base64. */
  readonly hash: string
  /** Size of the blob in bytes. */
  readonly size: number
  /** Size of this copy in bytes; differs from `size` for a shard. */
  readonly bytes: number
  /** The sending node's description of a copy. Undefined: a put on this node. */
  readonly copy: CopyOrder | undefined
  readonly labels: BlobLabels
  readonly origin: BlobOrigin
  readonly at: bigint
  /** The payload of a small blob, not copied; empty if the content is in `extents`. */
  readonly parts: ReadonlyArray<Uint8Array>
  /** CRC32C of each 64 KiB chunk of a small blob. */
  readonly crcs: ReadonlyArray<number>
  /**
   * Extents that hold a large blob's content durably. The blob owns them once `submit` resolves.
   */
  readonly extents: ReadonlyArray<Extent>
  /** Called with the outcome once it is decided, before it is durable. */
  readonly placed?: (outcome: Outcome) => void
}

export type Operation =
  | PutOperation
  | {
      readonly kind: "delete"
      readonly id: BlobId
      readonly origin: BlobOrigin
      readonly at: bigint
      /**
       * Time of a cluster-wide deletion: a copy put later stays. Undefined: deletes this copy only.
       */
      readonly cluster_at?: bigint
    }
  | {
      /** Removes a copy if it is still the one stored at this time. */
      readonly kind: "release"
      readonly id: BlobId
      readonly stored_at: bigint
      readonly at: bigint
    }
  | {
      /** Replaces the unreadable record of a removed copy. */
      readonly kind: "absent"
      readonly id: BlobId
      readonly place: Place
      readonly at: bigint
    }
  | {
      /** Removes a corrupt or missing copy. A different copy in its place is left alone. */
      readonly kind: "quarantined" | "lost"
      readonly id: BlobId
      readonly place: Place
      readonly detail: string
      readonly at: bigint
    }
  | {
      /**
       * Rewrites a live record, with other extents if given; does nothing if the record is no
       * longer live. `payload` is the inline payload as read.
       */
      readonly kind: "move"
      readonly id: BlobId
      readonly place: Place
      readonly head: RecordHead
      readonly payload: Uint8Array
      readonly extents?: ReadonlyArray<Extent>
      /** Updates the copy to a later put of the same content. */
      readonly renewal?: Renewed
    }

/** The outcome of an operation. */
export interface Outcome {
  /** The previous record, which was kept, removed or moved. Undefined: there was none. */
  readonly head: RecordHead | undefined
  /** Whether anything was written. False for a put of content that was already stored. */
  readonly is_done: boolean
  /** The record that was written, if any. */
  readonly record: NewRecord | undefined
  /** The time of the written record in Unix nanoseconds; 0 if nothing was written. */
  readonly at: bigint
}

export interface CommitQueue {
  /**
   * Resolves once the operation is durable and indexed. Rejects with a thrown BlobFault: a refusal
   * of `admit`, BlobCapacityExceeded or BlobStoreReadOnly.
   */
  readonly submit: (operation: Operation) => Promise<Outcome>
  /** Makes the volume read-only. Only the first call's detail is kept. */
  readonly fail: (detail: string) => void
  readonly failed: () => string | undefined
  /** Throws BlobStoreReadOnly after `fail`. */
  readonly assertWritable: () => void
  /** Resolves when no submitted operation is pending. */
  readonly settled: () => Promise<void>
}

/** A record as read from the log. */
export interface ReadRecord {
  readonly head: RecordHead
  /** The inline payload, not verified (`isPayloadIntact`); empty for other records. */
  readonly payload: Buffer
}

export interface LogReader {
  /** Reads a whole record. Undefined if its head is corrupt or belongs to another id. */
  readonly record: (id: BlobId, place: Place) => Promise<ReadRecord | undefined>
  /** Reads the head only. */
  readonly head: (id: BlobId, place: Place) => Promise<RecordHead | undefined>
  /** Reads the tail of a blob's record, for a corrupt head. */
  readonly tail: (id: BlobId, place: Place) => Promise<BlobTail | undefined>
}

/**
 * The extent files and the allocation of their space. The commit queue calls `keep` and `free` once
 * the record that says so is durable; recovery calls them when it replays that record. Both are
 * idempotent.
 */
export interface Extents {
  /** Assigns the extents of the live record of `id` to it, CRC tables included. */
  readonly keep: (id: BlobId, extents: ReadonlyArray<Extent>) => void
  /**
   * Frees extents that the live record of `id` no longer uses. Those that belong to another blob by
   * now stay.
   */
  readonly free: (id: BlobId, extents: ReadonlyArray<Extent>) => void
  /** The owned extents at the time of the call, for a checkpoint. Excludes uploads in progress. */
  readonly image: () => Iterable<Uint8Array>
  readonly bytes: () => { readonly live: number; readonly dead: number }
  /** The live part of `bytes`, in constant time. */
  readonly liveBytes: () => number
}

/** A log file as compaction sees it. */
export interface LogFile {
  readonly segment: Segment
  /** Bytes of the batches written, headers and padding included. */
  readonly written_bytes: number
  /** Bytes of the records that are the newest of their id. */
  readonly live_bytes: number
  /** The cursor of the file's last fact; 0 if it has none. */
  readonly last_cursor: number
  /** Whether new batches go to this file. */
  readonly is_current: boolean
}

/** The parts that uploads, reads, compaction and the scrub share. */
export interface VolumeParts {
  readonly dir: string
  readonly disk: VolumeDisk
  readonly limits: VolumeLimits
  readonly segments: Segments
  readonly index: Index
  readonly commits: CommitQueue
  readonly log: LogReader
  readonly budget: Budget
  readonly space: FreeSpace
  /** All log files in use, including the current one. */
  readonly logFiles: () => ReadonlyArray<LogFile>
  /** The last fact that the journal may drop. */
  readonly acknowledged: () => number
  /**
   * Writes a checkpoint, so that a replay needs nothing before it. Afterwards a log file without
   * live records and without facts after `acknowledged`, or an extent file without owned spans, may
   * be retired. On a full disk the checkpoint takes the space of empty files, but leaves
   * `spare_kept` spare log files (default 1).
   */
  readonly checkpoint: (spare_kept?: number) => Promise<void>
  /** Removes an empty log file from `logFiles`, then retires it. */
  readonly retireLog: (number: number, spare_max: number) => Promise<void>
  /** Removes the spare log files except one of minimum length. */
  readonly trimLog: () => Promise<void>
  /**
   * Closes the current log file if its dead space is worth compacting. Does nothing if the disk has
   * no space for the next one.
   */
  readonly sealLog: () => Promise<void>
  /** Bytes by which the log can grow without allocating disk space. */
  readonly logSpace: () => number
  /** State of background tasks that survives a restart; stored in the checkpoint. */
  readonly notes: Record<string, string>
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}
