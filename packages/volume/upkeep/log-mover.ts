/**
 * Visits every live record of a log file, in disk order and verified, and rewrites them elsewhere,
 * so that the file can be recycled.
 */

import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import { data_start } from "../log/format.ts"
import {
  type LoggedRecord,
  type ReadBatch,
  readBatch,
  readHeader,
  searchHeader,
} from "../log/reader.ts"
import { heldBytesOf, type RecordHead } from "../log/record.ts"
import type { LogFile, ReadRecord, VolumeParts } from "../parts.ts"
import { type Copies, isSamePlace, moved, payloadSpan } from "../reads/copies.ts"
import { damageOf } from "../reads/damage.ts"
import type { Pace } from "./pace.ts"

export interface MoverParts extends Pick<VolumeParts, "index" | "commits" | "log" | "logFiles"> {
  readonly copies: Copies
  /** The time noted for damage, in Unix nanoseconds. */
  readonly clock: () => bigint
}

/** A live record with its place. The payload is not verified yet. */
interface LiveRecord extends ReadRecord {
  readonly place: Place
}

/** Bytes processed between pauses: a millisecond of processor time. */
const slice_bytes = 1024 * 1024
const no_payload = Buffer.alloc(0)

/** `guarded` handles damage, and a copy that is no longer live needs no handling. */
export const ignoreHandled = (cause: unknown) => {
  if (cause !== moved && faultOf(cause)._tag !== "BlobCorrupt") throw cause
}

const payloadOf = ({ header, bytes }: ReadBatch, { head, position }: LoggedRecord) => {
  const start = position - header.position + head.head_bytes
  return bytes.subarray(start, start + head.payload_bytes)
}

/** The live records of one batch, in slices. */
const slicesOf = ({ index }: MoverParts, batch: ReadBatch, file: number) => {
  const slices: Array<Array<LiveRecord>> = []
  let slice: Array<LiveRecord> = []
  let bytes = 0
  for (const record of batch.records) {
    const place = index.find(record.head.id)
    if (place?.file !== file || place.position !== record.position) continue
    slice.push({ head: record.head, payload: payloadOf(batch, record), place })
    bytes += place.bytes
    if (bytes < slice_bytes) continue
    slices.push(slice)
    slice = []
    bytes = 0
  }
  if (slice.length > 0) slices.push(slice)
  return slices
}

const bytesOf = (records: ReadonlyArray<LiveRecord>) =>
  records.reduce((sum, { place }) => sum + place.bytes, 0)

/** Reads one record again and verifies it. Undefined if it was quarantined or moved. */
const rereadRecord = async ({ copies, clock }: MoverParts, id: BlobId, place: Place) => {
  try {
    return await copies.guarded({ id, place, at: clock() }, async (fileOf) => {
      const record = await copies.record(id, place, fileOf)
      if (!place.is_large) payloadSpan(record, wholeOf(record.head))
      return record
    })
  } catch (cause) {
    ignoreHandled(cause)
    return undefined
  }
}

const wholeOf = (head: RecordHead) => ({ start: 0, end: heldBytesOf(head) })

/** Whether a record that was read with its batch is intact. */
const isIntact = ({ head, payload, place }: LiveRecord) => {
  if (!isHeld(place) || place.is_large) return true
  try {
    payloadSpan({ head, payload }, wholeOf(head))
    return true
  } catch (cause) {
    if (!damageOf(cause)) throw cause
    return false
  }
}

/** Rewrites one record. A damaged blob is quarantined; a damaged tombstone is replaced. */
const moveRecord = async (parts: MoverParts, id: BlobId, place: Place) => {
  const { commits, log, clock } = parts
  if (isHeld(place)) {
    const record = await rereadRecord(parts, id, place)
    if (record) await commits.submit({ kind: "move", id, place, ...record })
    return
  }
  const head = await log.head(id, place)
  const at = clock()
  if (head) await commits.submit({ kind: "move", id, place, head, payload: no_payload })
  else if (place.kind === "gone") await commits.submit({ kind: "absent", id, place, at })
  else if (isSamePlace(parts.index.find(id), place)) {
    // Only the deletion itself matters.
    await commits.submit({ kind: "delete", id, origin: store_origin, at })
  }
}

/**
 * Calls `step` with the live records of a file, slice by slice. Returns whether all batches were
 * intact, and how many live bytes there were.
 */
const visitBatches = async (
  parts: MoverParts,
  { segment, written_bytes }: LogFile,
  step: (records: ReadonlyArray<LiveRecord>) => Promise<void>,
  pace: Pace,
) => {
  const end = data_start + written_bytes
  let is_whole = true
  let live_bytes = 0
  let sequence = 0
  for (let position = data_start; position < end; ) {
    const header_here = await readHeader(segment, position)
    const header = header_here ?? (await searchHeader(segment, position, sequence))
    if (!header_here) is_whole = false
    if (!header || header.position >= end) break
    const batch = await readBatch(segment, header)
    is_whole &&= batch.is_whole
    for (const slice of slicesOf(parts, batch, segment.number)) {
      live_bytes += bytesOf(slice)
      await step(slice)
      await pace(bytesOf(slice))
    }
    await pace(0)
    position = header.position + header.bytes
    sequence = header.sequence
  }
  return { is_whole, live_bytes }
}

const liveBytesOf = ({ logFiles }: MoverParts, number: number) =>
  logFiles().find(({ segment }) => segment.number === number)?.live_bytes ?? 0

/** Visits the index entries of a file, table by table, unless they moved in the meantime. */
const forEachEntry = async (
  { index }: MoverParts,
  number: number,
  pace: Pace,
  step: (id: BlobId, place: Place) => Promise<void>,
) => {
  for (const entries of index.slices(number)) {
    for (const [id, place] of entries) {
      if (isSamePlace(index.find(id), place)) await step(id, place)
    }
    await pace(0)
  }
}

/** Rewrites all live records of a file. It has none afterwards, unless it is damaged. */
export const emptyLog = async (parts: MoverParts, file: LogFile, pace: Pace) => {
  const { commits } = parts
  const move = async (record: LiveRecord) => {
    const { head, payload, place } = record
    const { id } = head
    if (isIntact(record)) await commits.submit({ kind: "move", id, place, head, payload })
    else await moveRecord(parts, id, place)
  }
  const step = async (slice: ReadonlyArray<LiveRecord>) => {
    await Promise.all(slice.map(move))
  }
  await visitBatches(parts, file, step, pace)
  const { number } = file.segment
  if (liveBytesOf(parts, number) === 0) return
  // Records in corrupt batches, which the index knows from a checkpoint.
  await forEachEntry(parts, number, pace, (id, place) => moveRecord(parts, id, place))
}

/** Verifies all live records of a file. Damage is handled as in a read. */
export const verifyLog = async (parts: MoverParts, file: LogFile, pace: Pace) => {
  const step = async (slice: ReadonlyArray<LiveRecord>) => {
    for (const record of slice) {
      if (!isIntact(record)) await rereadRecord(parts, record.head.id, record.place)
    }
  }
  const { is_whole, live_bytes } = await visitBatches(parts, file, step, pace)
  const { number } = file.segment
  if (is_whole && live_bytes >= Math.min(file.live_bytes, liveBytesOf(parts, number))) return
  await forEachEntry(parts, number, pace, async (id, place) => {
    if (!(await parts.log.head(id, place))) await moveRecord(parts, id, place)
  })
}
