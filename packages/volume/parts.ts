/**
 * What a volume's parts offer each other: types only. The engine makes the parts and hands each the
 * others it needs; none of them reaches around these.
 */
import type { BlobOrigin, OfferedBlob } from "#actors/blob-storage/blobs/admission.ts"
import type { CopyOrder } from "#actors/blob-storage/node-engine.ts"
import type { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import type { VolumeDisk, VolumeFile } from "./disk.ts"
import type { Budget } from "./free-space/budget.ts"
import type { FreeSpace } from "./free-space/gauge.ts"
import type { SegmentKind } from "./log/format.ts"
import type { Extent, KnownBlob, NewRecord, RecordHead } from "./log/record.ts"
import type { Renewed } from "./log/record-facts.ts"
import type { makeIndex, Place } from "./lookup/map.ts"

export type Index = ReturnType<typeof makeIndex>

/** What the engine was opened with, and what follows of it. */
export interface VolumeLimits {
  readonly size_max_bytes: number
  readonly segment_bytes: number
  /** Blobs below it are inline in the log: 256 KiB, or an eighth of a very small segment. */
  readonly inline_bytes_max: number
}

/** One of the volume's files, open for as long as the volume is. */
export interface Segment {
  readonly kind: SegmentKind
  /** From 1, by its kind; it stays when the file is recycled, the generation does not. */
  readonly number: number
  readonly generation: number
  readonly bytes: number
  /** Where the file ended when it was taken into use: one of the log at `bytes`. */
  readonly written_bytes: number
  /** What the file's checksums begin with. */
  readonly seed: number
  /** What its superblock says of the records in it: one of `formats`, which only rises. */
  format: number
  readonly file: VolumeFile
}

export interface Segments {
  /** The file of a number, unless it is spare or there is none; it may be damaged. */
  readonly find: (kind: SegmentKind, number: number) => Segment | undefined
  /** The files in use, in no order. */
  readonly all: (kind: SegmentKind) => ReadonlyArray<Segment>
  /**
   * A file with room for `bytes` of data: a spare one, or one that is made now. One of the log is
   * full of zeros; one of extents takes the disk's room only as it is written. Rejects with the
   * disk's error, ENOSPC where it is full.
   */
  readonly take: (kind: SegmentKind, bytes: number) => Promise<Segment>
  /**
   * Takes a file out of use, as something that may never be read again. A log file is used again
   * under another generation while there are fewer than `spare_max` spare ones; all others are
   * removed. To be called when nothing durable names it any more (`VolumeParts.checkpoint`).
   */
  readonly retire: (segment: Segment, spare_max?: number) => Promise<void>
}

/** A put of bytes that are all there. */
export interface PutOperation extends OfferedBlob {
  readonly kind: "put"
  /** BLAKE3-256 in hex; `checksum` is the same in base64. */
  readonly hash: string
  /** Bytes of the blob. */
  readonly size: number
  /** Bytes of the copy: other than `size` where it is a shard. */
  readonly bytes: number
  /** What another node says of the copy that it sends; undefined: the blob is put here. */
  readonly copy: CopyOrder | undefined
  readonly labels: BlobLabels
  readonly origin: BlobOrigin
  readonly at: bigint
  /** The payload of a small blob, not copied; empty where it is in `extents`. */
  readonly parts: ReadonlyArray<Uint8Array>
  /** CRC32C of each 64 KiB of a small blob. */
  readonly crcs: ReadonlyArray<number>
  /** Where a large blob's bytes are, durably. They are its own only once this was answered. */
  readonly extents: ReadonlyArray<Extent>
  /** Told what it comes to once that is decided, and before it is durable. */
  readonly placed?: (outcome: Outcome) => void
}

export type Operation =
  | PutOperation
  | {
      readonly kind: "delete"
      readonly id: BlobId
      readonly origin: BlobOrigin
      readonly at: bigint
      /** When it was deleted on every node: a copy that came later stays. Undefined: only here. */
      readonly cluster_at?: bigint
    }
  | {
      /** Lets a copy go, if it is still the one that came then. */
      readonly kind: "release"
      readonly id: BlobId
      readonly stored_at: bigint
      readonly at: bigint
    }
  | {
      /** Says once more that nothing is here of what is gone: its record does not hold. */
      readonly kind: "absent"
      readonly id: BlobId
      readonly place: Place
      readonly at: bigint
    }
  | {
      /** Takes a copy out that is corrupt or gone; another in its place is left alone. */
      readonly kind: "quarantined" | "lost"
      readonly id: BlobId
      readonly place: Place
      readonly detail: string
      readonly at: bigint
    }
  | {
      /**
       * Writes a live record again, with other extents where they are given; nothing where the
       * record is not the live one any more. `payload` is the inline one, as it was read.
       */
      readonly kind: "move"
      readonly id: BlobId
      readonly place: Place
      readonly head: RecordHead
      readonly payload: Uint8Array
      readonly extents?: ReadonlyArray<Extent>
      /** Makes the copy one of a later put, as of another time of its own. */
      readonly renewal?: Renewed
    }

/** What an operation came to. */
export interface Outcome {
  /** The record that was there before and was kept, removed or moved; undefined: none was. */
  readonly head: RecordHead | undefined
  /** Whether anything was written. False for a put: its content was stored already. */
  readonly is_done: boolean
  /** What was written; undefined where nothing was. */
  readonly record: NewRecord | undefined
  /** The time of what was written, in Unix nanoseconds; 0 where nothing was. */
  readonly at: bigint
}

export interface CommitLine {
  /**
   * Answers once the operation is durable and the index knows it. Rejects with a thrown BlobFault:
   * refusals of `admit`, BlobCapacityExceeded, BlobStoreReadOnly.
   */
  readonly submit: (operation: Operation) => Promise<Outcome>
  /** Nothing is written from now on. The first call decides the detail. */
  readonly fail: (detail: string) => void
  readonly failed: () => string | undefined
  /** Throws BlobStoreReadOnly where `fail` was called. */
  readonly assertWritable: () => void
  /** Resolves when nothing that was submitted is under way. */
  readonly settled: () => Promise<void>
}

/** A record as it was read from the log. */
export interface ReadRecord {
  readonly head: RecordHead
  /** The inline payload, not yet checked (`payloadHolds`); empty for other records. */
  readonly payload: Buffer
}

export interface LogReads {
  /** The whole record at a place; undefined where its head does not hold, or is another id's. */
  readonly record: (id: BlobId, place: Place) => Promise<ReadRecord | undefined>
  /** The head alone. */
  readonly head: (id: BlobId, place: Place) => Promise<RecordHead | undefined>
  /** What the tail of a blob's record says, where its head does not hold. */
  readonly known: (id: BlobId, place: Place) => Promise<KnownBlob | undefined>
}

/**
 * The files of extents, which know what is taken in each of them. The commit line calls `keep` and
 * `free` when a record that says so is durable, recovery when it replays one; both are idempotent.
 */
export interface Extents {
  /** The extents of a record that is the live one of `id` from now on, tables included. */
  readonly keep: (id: BlobId, extents: ReadonlyArray<Extent>) => void
  /** Extents that the live record of `id` has no more; those that are another's by now stay so. */
  readonly free: (id: BlobId, extents: ReadonlyArray<Extent>) => void
  /** For the checkpoint: what is kept, as of the call, without what uploads have reserved. */
  readonly image: () => Iterable<Uint8Array>
  readonly bytes: () => { readonly live: number; readonly dead: number }
  /** The live part of `bytes`, which is counted and not summed up. */
  readonly liveBytes: () => number
}

/** Of one log file what is needed to empty and recycle it. */
export interface LogFile {
  readonly segment: Segment
  /** Bytes of batches that were written, headers and padding included. */
  readonly written_bytes: number
  /** Bytes of records that are the newest of their identifier. */
  readonly live_bytes: number
  /** The cursor of the last fact in it; 0 where it has none. */
  readonly last_cursor: number
  /** Whether batches are still written to it. */
  readonly is_current: boolean
}

/** What uploads, reads, compaction and scrub are given. */
export interface VolumeParts {
  readonly dir: string
  readonly disk: VolumeDisk
  readonly limits: VolumeLimits
  readonly segments: Segments
  readonly index: Index
  readonly line: CommitLine
  readonly log: LogReads
  readonly budget: Budget
  readonly space: FreeSpace
  /** Every log file that is in use, the current one included. */
  readonly logFiles: () => ReadonlyArray<LogFile>
  /** The last fact that the journal may forget. */
  readonly acknowledged: () => number
  /**
   * Makes a checkpoint durable, so that nothing before it is needed for a replay. Afterwards a log
   * file without live records and without facts after `acknowledged`, or a file of extents in which
   * nothing is kept, may be retired. On a full disk what is empty makes way for it, but
   * for `spare_kept` log files: one, unless 0 is given.
   */
  readonly checkpoint: (spare_kept?: number) => Promise<void>
  /** Takes an emptied log file out of `logFiles`, then retires it. */
  readonly retireLog: (number: number, spare_max: number) => Promise<void>
  /** Removes the spare log files but one, which is as short as a log file may be. */
  readonly trimLog: () => Promise<void>
  /**
   * Ends the current log file where its dead space is worth moving what is live in it. Nothing
   * happens where the disk has no room for the next one.
   */
  readonly sealLog: () => Promise<void>
  /** Bytes that the log may grow by without taking anything of the disk. */
  readonly logRoom: () => number
  /** What maintenance wants to know after a restart; kept with the checkpoint. */
  readonly notes: Record<string, string>
  /** Milliseconds of a clock that only goes on. */
  readonly now: () => number
}
