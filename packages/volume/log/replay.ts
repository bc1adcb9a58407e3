/**
 * Replays the log: applies every record after the checkpoint to the state, in order.
 *
 * At most one batch is written before the previous one is synced. An invalid batch is therefore
 * corrupt if a batch of the same generation with a higher sequence follows anywhere: its valid
 * records are kept and it counts as damaged. A blob with only a valid tail was stored and is
 * corrupt. Otherwise the invalid batch is the torn end of the log, which was never acknowledged.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import type { LogReader, Segment } from "../parts.ts"
import {
  batch_bytes_max,
  data_start,
  page_bytes,
  type ReadBatchHeader,
  toRecords,
} from "./format.ts"
import {
  arePayloadsIntact,
  type HeadlessRecord,
  type LoggedRecord,
  type ReadBatch,
  readBatch,
  readHeader,
  type Salvaged,
  salvage,
  searchHeader,
} from "./reader.ts"
import { extentsOf, freedOf, type NewRecord, type RecordHead, shardOf } from "./record.ts"
import { movedOf } from "./record-facts.ts"
import { fillZeros } from "./segments.ts"
import type { AppliedRecord, Counters, LogFileState, VolumeState } from "./state.ts"
import type { LogEnd } from "./writer.ts"

const no_extents = [] as const

const appliedOf = (head: RecordHead): AppliedRecord => ({
  kind: head.kind,
  id: head.id,
  size: head.size,
  shard: shardOf(head),
  at: head.at,
  cursor: head.cursor,
  is_moved: head.is_moved,
  is_large: head.is_large,
  extents: head.is_large ? extentsOf(head) : no_extents,
  freed: freedOf(head),
})

/** A log file with batches to replay, and the position of the first. */
export interface ReplayFile {
  readonly file: LogFileState
  readonly position: number
}

/** A batch that is not applied yet: it may be the torn one. */
interface PendingBatch {
  readonly file: LogFileState
  readonly batch: ReadBatch
}

/**
 * Whether a removal lacks the size or extents of the blob it removes: it was written for another
 * record.
 */
const isIncomplete = ({ kind, size, freed }: AppliedRecord, old: Place | undefined) =>
  kind !== "blob" && isHeld(old) && (size === 0 || (old.is_large && freed.length === 0))

/**
 * Completes a removal from the blob's own record. A log without its checkpoint may hold a blob and
 * a later removal of it, but no longer the first removal, which had the size.
 */
const completed = async (
  log: LogReader,
  record: AppliedRecord,
  place: Place,
): Promise<AppliedRecord> => {
  const head = await log.head(record.id, place)
  if (head) {
    const freed = head.is_large ? extentsOf(head) : no_extents
    return { ...record, size: head.size, shard: shardOf(head), freed }
  }
  const tail = await log.tail(record.id, place)
  return tail ? { ...record, size: tail.size, shard: tail.shard } : record
}

type FoundRecord = LoggedRecord | HeadlessRecord

interface ReplayParts {
  readonly state: VolumeState
  readonly log: LogReader
}

/** A blob whose record has a tail but no valid head, if the index still has it. */
export interface HeadlessBlob {
  readonly id: BlobId
  readonly place: Place
}

/** The change of state for a headless record. The extents of a large blob are unknown. */
const headlessOf = ({ id, tail: { size, shard } }: HeadlessRecord): AppliedRecord => ({
  kind: "blob",
  id,
  size,
  shard,
  at: 0n,
  cursor: 0,
  is_moved: false,
  is_large: false,
  extents: no_extents,
  freed: no_extents,
})

const inOrder = ({ records, headless }: Salvaged): ReadonlyArray<FoundRecord> =>
  headless.length === 0
    ? records
    : [...records, ...headless].sort((one, other) => one.position - other.position)

const endOf = (one: FoundRecord) =>
  one.position + ("head" in one ? toRecords(one.head.record_bytes) : one.bytes)

/** Applies records to the state, unless it already has a newer one. */
const makeApply = ({ state, log }: ReplayParts) => {
  const { index, counters } = state
  const headless = new Map<BlobId, Place>()
  /**
   * Times of records found outside a valid batch. A misdirected write is found too early; because
   * times rise, they show which record is newer.
   */
  const salvaged_at = new Map<BlobId, bigint>()

  /** A tail has no time, so any other record of the blob takes precedence. */
  const applyHeadless = (file: LogFileState, record: HeadlessRecord) => {
    const { id, position, bytes } = record
    if (isHeld(index.find(id)) || salvaged_at.has(id)) return
    state.apply(headlessOf(record), file, position, bytes)
    const place = index.find(id)
    if (place) headless.set(id, place)
  }
  const apply = async (
    file: LogFileState,
    found: ReadonlyArray<FoundRecord>,
    is_salvaged = false,
  ) => {
    for (const one of found) {
      if (!("head" in one)) {
        applyHeadless(file, one)
        continue
      }
      const { head, position } = one
      if (head.at < (salvaged_at.get(head.id) ?? 0n)) {
        counters.cursor = Math.max(counters.cursor, head.is_moved ? 0 : head.cursor)
        continue
      }
      if (is_salvaged) salvaged_at.set(head.id, head.at)
      let record = appliedOf(head)
      const old = index.find(head.id)
      if (old && isIncomplete(record, old)) record = await completed(log, record, old)
      state.apply(record, file, position, head.record_bytes)
    }
  }
  return {
    apply,
    /** The headless blobs without a later record. */
    headless: (): ReadonlyArray<HeadlessBlob> =>
      Array.from(headless, ([id, place]) => ({ id, place })).filter(({ id, place }) => {
        const now = index.find(id)
        return now?.file === place.file && now.position === place.position
      }),
  }
}
type Apply = ReturnType<typeof makeApply>["apply"]

/** Applies the valid records of a span without a valid batch. Returns their number. */
const applySalvaged = async (apply: Apply, file: LogFileState, from: number, to: number) => {
  let count = 0
  for (let at = from; at < to; ) {
    const stop = at + batch_bytes_max
    const found = await salvage(file.segment, at, Math.min(to, stop + batch_bytes_max))
    const begun = inOrder(found).filter(({ position }) => position < stop)
    await apply(file, begun, true)
    count += begun.length
    const last = begun.at(-1)
    // The tail of an applied record must not be found again without its head.
    at = last ? Math.max(stop, endOf(last)) : stop
  }
  return count
}

const noteHeader = (counters: Counters, { acknowledged, first_cursor }: ReadBatchHeader) => {
  counters.acknowledged = Math.max(counters.acknowledged, acknowledged)
  // Facts whose records are damaged had cursors too.
  counters.cursor = Math.max(counters.cursor, first_cursor - 1)
}

export interface Replayed {
  /** Where the log continues. */
  readonly end: LogEnd
  /** Deletes that only the last batch records. */
  readonly deletes: ReadonlyArray<NewRecord>
  /** Stored blobs with corrupt heads, not reported yet. */
  readonly headless: ReadonlyArray<HeadlessBlob>
}

const deletesIn = ({ records }: ReadBatch): ReadonlyArray<NewRecord> =>
  records
    .map(({ head }) => head)
    .filter(({ kind, is_moved }) => kind === "tombstone" && !is_moved)
    .map((head) => movedOf(head))

/** The last batch read. It is applied once another batch proves that it is not the torn one. */
const makePending = ({ counters }: VolumeState, apply: Apply) => {
  let pending: PendingBatch | undefined
  let deletes: ReadonlyArray<NewRecord> = []
  const settle = async () => {
    if (!pending) return
    const { file, batch } = pending
    const { header } = batch
    await apply(file, inOrder(batch), !batch.is_whole)
    file.end = header.position + header.bytes
    deletes = deletesIn(batch)
    if (!batch.is_whole) counters.damaged_batches += 1
    noteHeader(counters, header)
    pending = undefined
  }
  return {
    settle,
    set: (batch: PendingBatch) => {
      pending = batch
    },
    get: () => pending,
    /** Deletes of the last applied batch. */
    deletes: () => deletes,
  }
}

const makeReplay = (parts: ReplayParts, start: LogEnd) => {
  const { counters } = parts.state
  const { apply, headless } = makeApply(parts)
  const pending = makePending(parts.state, apply)
  const { settle } = pending
  /** The last batch read, and the one before it. */
  let last: LogEnd = start
  let before: LogEnd = start

  const take = async (file: LogFileState, header: ReadBatchHeader) => {
    await settle()
    const follows = header.sequence === last.sequence + 1 && header.previous_crc === last.crc
    if (last.sequence > 0 && !follows && last.file === header.file) counters.damaged_batches += 1
    before = last
    const { sequence, crc, position, bytes } = header
    last = { file: file.segment.number, position: position + bytes, sequence, crc }
    pending.set({ file, batch: await readBatch(file.segment, header) })
  }
  /** Where the previous file ended: its last batch is damaged if a sequence is missing. */
  let ended: ReplayFile | undefined
  const salvageEnd = async ({ sequence }: ReadBatchHeader) => {
    const previous = ended
    ended = undefined
    if (previous === undefined || sequence === last.sequence + 1) return
    const { segment } = previous.file
    const stop = Math.min(segment.bytes, previous.position + batch_bytes_max)
    await settle()
    if ((await applySalvaged(apply, previous.file, previous.position, stop)) === 0) return
    previous.file.end = stop
    counters.damaged_batches += 1
  }
  /** Replays all batches of a file. */
  const replayFile = async ({ file, position: first }: ReplayFile) => {
    const { segment } = file
    let position = first
    while (position < segment.bytes) {
      const next = await readHeader(segment, position)
      const is_next = next !== undefined && next.sequence > last.sequence
      const found = is_next ? next : await searchHeader(segment, position, last.sequence)
      if (!found) break
      await salvageEnd(found)
      if (found.position > position) {
        await settle()
        await applySalvaged(apply, file, position, found.position)
      }
      await take(file, found)
      position = found.position + found.bytes
    }
    ended = { file, position }
  }
  /** Applies or discards the last batch. Returns where the log continues. */
  const end = async (): Promise<Replayed> => {
    const last_batch = pending.get()
    const replayed = (log_end: LogEnd): Replayed => ({
      end: log_end,
      deletes: pending.deletes(),
      headless: headless(),
    })
    if (!last_batch) return replayed(last)
    const { file, batch } = last_batch
    if (batch.is_whole && arePayloadsIntact(batch)) {
      await settle()
      // A failed sync may have left data in the cache that is not on disk.
      await file.segment.file.write([batch.bytes], batch.header.position)
      return replayed(last)
    }
    file.end = batch.header.position
    parts.state.noteTorn(batch.header.first_cursor - 1 + batch.header.records)
    const { position } = batch.header
    return replayed({ ...before, file: file.segment.number, position })
  }
  return { replayFile, end }
}

const settle_bytes = 256 * page_bytes
const zeros = Buffer.alloc(settle_bytes)

/**
 * Makes the replayed log durable, because it may only be in the cache, and erases the remains of a
 * torn batch after the end, which must never pass as stored data.
 */
const settleTail = async (segment: Segment, end: number) => {
  const stop = Math.min(segment.bytes, end + 2 * batch_bytes_max)
  for (let at = end; at < stop; at += settle_bytes) {
    const piece_end = Math.min(stop, at + settle_bytes)
    const bytes = await segment.file.read(at, piece_end - at)
    if (!zeros.subarray(0, bytes.length).equals(bytes)) await fillZeros(segment.file, at, piece_end)
  }
  await segment.file.datasync()
}

/**
 * Replays files in the order of their batches, after `start`. Everything applied to the state is
 * durable on return.
 */
export const replay = async (
  parts: ReplayParts,
  files: ReadonlyArray<ReplayFile>,
  start: LogEnd,
): Promise<Replayed> => {
  const { replayFile, end } = makeReplay(parts, start)
  for (const file of files) await replayFile(file)
  const replayed = await end()
  const last = parts.state.files.get(replayed.end.file)
  if (last) await settleTail(last.segment, Math.max(data_start, replayed.end.position))
  return replayed
}
