/**
 * The state of a volume after all durable records: the index, the live bytes of each log file,
 * totals, and the last cursor and time. The commit queue applies each record once it is durable;
 * recovery applies the records that it reads.
 */

import type { Shard } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place, type PlaceKind } from "../blob-index/blob-index.ts"
import type { Extents, Index, LogFile, Segment } from "../parts.ts"
import { copyBytes } from "../writes/copy-admission.ts"
import { data_start, toRecords } from "./format.ts"
import { makeRecentFacts } from "./recent-facts.ts"
import type { Extent, RecordKind } from "./record.ts"

/** The fields of a record that change the state. */
export interface AppliedRecord {
  readonly kind: RecordKind
  readonly id: BlobId
  /** Size of the blob in bytes. */
  readonly size: number
  readonly shard: Shard | undefined
  readonly at: bigint
  readonly cursor: number
  readonly is_moved: boolean
  readonly is_large: boolean
  readonly extents: ReadonlyArray<Extent>
  readonly freed: ReadonlyArray<Extent>
}

/** The state of a log file. */
export interface LogFileState {
  readonly segment: Segment
  /** Position of the next batch. */
  end: number
  live_bytes: number
  first_cursor: number
  last_cursor: number
}

/** Totals, all stored in the checkpoint. */
export interface Counters {
  used_bytes: number
  quarantined: number
  /** The last cursor assigned. */
  cursor: number
  acknowledged: number
  /** The last time assigned, in Unix nanoseconds. */
  last_at: bigint
  damaged_batches: number
}

export const fresh_counters = {
  used_bytes: 0,
  quarantined: 0,
  cursor: 0,
  acknowledged: 0,
  last_at: 0n,
  damaged_batches: 0,
} as const satisfies Counters

const place_kinds: Record<RecordKind, PlaceKind> = {
  blob: "blob",
  tombstone: "tombstone",
  quarantined: "gone",
  lost: "gone",
  released: "gone",
}

const placeKind = ({ kind, shard }: AppliedRecord): PlaceKind =>
  kind === "blob" && shard ? "shard" : place_kinds[kind]

const logFileOf = (
  { segment, end, live_bytes, last_cursor }: LogFileState,
  current: number,
): LogFile => ({
  segment,
  written_bytes: end - data_start,
  live_bytes,
  last_cursor,
  is_current: segment.number === current,
})

/** Adds a record to the totals. */
const count = (
  counters: Counters,
  { kind, size, shard, is_moved }: AppliedRecord,
  old: Place | undefined,
) => {
  const bytes = copyBytes(size, shard)
  if (kind === "blob") {
    if (!isHeld(old)) counters.used_bytes += bytes
    return
  }
  // The size in a damaged head may be wrong.
  if (isHeld(old)) counters.used_bytes = Math.max(0, counters.used_bytes - bytes)
  if ((kind === "quarantined" || kind === "lost") && !is_moved) counters.quarantined += 1
}

export const makeState = (index: Index, extents: Extents, counters: Counters) => {
  const recent = makeRecentFacts()
  const files = new Map<number, LogFileState>()
  /** Live bytes over all files. */
  let live_bytes = 0

  const addFile = (segment: Segment, known: Partial<LogFileState> = {}): LogFileState => {
    const file = {
      segment,
      end: known.end ?? data_start,
      live_bytes: known.live_bytes ?? 0,
      first_cursor: known.first_cursor ?? 0,
      last_cursor: known.last_cursor ?? 0,
    }
    files.set(segment.number, file)
    live_bytes += file.live_bytes
    return file
  }
  const addLive = (file: LogFileState, bytes: number) => {
    file.live_bytes += bytes
    live_bytes += bytes
  }
  /** Applies a record at this position of a file: the newest of its id. */
  const apply = (
    record: AppliedRecord,
    file: LogFileState,
    position: number,
    record_bytes: number,
  ) => {
    const { id, is_large, cursor, at } = record
    const old = index.find(id)
    if (old) {
      const before = files.get(old.file)
      if (before) addLive(before, -toRecords(old.bytes))
    }
    count(counters, record, old)
    const place = { file: file.segment.number, position, bytes: record_bytes }
    index.set(id, { ...place, kind: placeKind(record), is_large })
    addLive(file, toRecords(record_bytes))
    if (record.freed.length > 0) extents.free(id, record.freed)
    if (record.extents.length > 0) extents.keep(id, record.extents)
    if (at > counters.last_at) counters.last_at = at
    if (cursor === 0 || record.is_moved) return
    if (cursor > counters.cursor) counters.cursor = cursor
    if (file.first_cursor === 0) file.first_cursor = cursor
    file.last_cursor = cursor
  }
  /** The last cursor that may be in a batch discarded as the torn end of the log. */
  let torn_cursor = 0
  /**
   * Drops facts up to a cursor. If a corrupt batch was discarded as the torn end, its facts may
   * have been delivered: their cursors are not reused.
   */
  const acknowledge = (cursor: number) => {
    if (cursor > counters.cursor && cursor <= torn_cursor) counters.cursor = cursor
    const known = Math.min(cursor, counters.cursor)
    counters.acknowledged = Math.max(counters.acknowledged, known)
  }
  const noteTorn = (cursor: number) => {
    torn_cursor = cursor
  }
  return {
    index,
    extents,
    counters,
    files,
    recent,
    addFile,
    liveBytes: () => live_bytes,
    /** Drops a file without live records. */
    removeFile: (number: number) => void files.delete(number),
    apply,
    acknowledge,
    noteTorn,
    logFiles: (current: number) => Array.from(files.values(), (file) => logFileOf(file, current)),
  }
}
export type VolumeState = ReturnType<typeof makeState>
