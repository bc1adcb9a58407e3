/**
 * Going through one log file: every record that is live, in the order of the disk, verified; and
 * writing them again elsewhere, so that the file can be used anew.
 */
import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { data_start } from "../log/format.ts"
import {
  type LoggedRecord,
  type ReadBatch,
  readBatch,
  readHeader,
  searchHeader,
} from "../log/reading.ts"
import { heldBytesOf, type RecordHead } from "../log/record.ts"
import { isHeld, type Place } from "../lookup/map.ts"
import type { LogFile, ReadRecord, VolumeParts } from "../parts.ts"
import { type Copies, isSamePlace, moved, payloadStretch } from "../reads/copies.ts"
import { damageOf } from "../reads/damage.ts"
import type { Pace } from "./pace.ts"

export interface MoverParts extends Pick<VolumeParts, "index" | "line" | "log" | "logFiles"> {
  readonly copies: Copies
  /** Unix nanoseconds, for what is found damaged. */
  readonly clock: () => bigint
}

/** A live record with its place; the payload is not yet verified. */
interface LiveRecord extends ReadRecord {
  readonly place: Place
}

/** Worked on between two pauses, in bytes: a millisecond of the processor. */
const slice_bytes = 1024 * 1024
const no_payload = Buffer.alloc(0)

/** Damage is dealt with by `guarded`; what is not the live copy any more is nobody's concern. */
export const ignoreSetAside = (cause: unknown) => {
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

/** The record alone, read anew and verified; undefined where it was set aside or moved. */
const readAlone = async ({ copies, clock }: MoverParts, id: BlobId, place: Place) => {
  try {
    return await copies.guarded({ id, place, at: clock() }, async (fileOf) => {
      const record = await copies.record(id, place, fileOf)
      if (!place.is_large) payloadStretch(record, wholeOf(record.head))
      return record
    })
  } catch (cause) {
    ignoreSetAside(cause)
    return undefined
  }
}

const wholeOf = (head: RecordHead) => ({ start: 0, end: heldBytesOf(head) })

/** Whether a record that was read with its batch is what was written. */
const holds = ({ head, payload, place }: LiveRecord) => {
  if (!isHeld(place) || place.is_large) return true
  try {
    payloadStretch({ head, payload }, wholeOf(head))
    return true
  } catch (cause) {
    if (!damageOf(cause)) throw cause
    return false
  }
}

/** Writes one record again; a damaged blob is set aside, a damaged tombstone written anew. */
const moveAlone = async (parts: MoverParts, id: BlobId, place: Place) => {
  const { line, log, clock } = parts
  if (isHeld(place)) {
    const record = await readAlone(parts, id, place)
    if (record) await line.submit({ kind: "move", id, place, ...record })
    return
  }
  const head = await log.head(id, place)
  const at = clock()
  if (head) await line.submit({ kind: "move", id, place, head, payload: no_payload })
  else if (place.kind === "gone") await line.submit({ kind: "absent", id, place, at })
  else if (isSamePlace(parts.index.find(id), place)) {
    // That the identifier is deleted is all that counts of it.
    await line.submit({ kind: "delete", id, origin: store_origin, at })
  }
}

/**
 * Goes through the batches of a file; `step` is given its live records, slice by slice. Answers
 * whether all batches were whole, and how many live bytes there were.
 */
const walk = async (
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
    const at_once = await readHeader(segment, position)
    const header = at_once ?? (await searchHeader(segment, position, sequence))
    if (!at_once) is_whole = false
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

/** What the index has in a file, table by table, if it is there still when its turn comes. */
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

/** Writes all live records of a file again; it has none afterwards, unless something is amiss. */
export const emptyLog = async (parts: MoverParts, file: LogFile, pace: Pace) => {
  const { line } = parts
  const move = async (record: LiveRecord) => {
    const { head, payload, place } = record
    const { id } = head
    if (holds(record)) await line.submit({ kind: "move", id, place, head, payload })
    else await moveAlone(parts, id, place)
  }
  const step = async (slice: ReadonlyArray<LiveRecord>) => {
    await Promise.all(slice.map(move))
  }
  await walk(parts, file, step, pace)
  const { number } = file.segment
  if (liveBytesOf(parts, number) === 0) return
  // Records in batches that do not hold: the index knows them from a checkpoint.
  await forEachEntry(parts, number, pace, (id, place) => moveAlone(parts, id, place))
}

/** Verifies all live records of a file; a damaged one goes the way of a read that finds it. */
export const verifyLog = async (parts: MoverParts, file: LogFile, pace: Pace) => {
  const step = async (slice: ReadonlyArray<LiveRecord>) => {
    for (const record of slice) {
      if (!holds(record)) await readAlone(parts, record.head.id, record.place)
    }
  }
  const { is_whole, live_bytes } = await walk(parts, file, step, pace)
  const { number } = file.segment
  if (is_whole && live_bytes >= Math.min(file.live_bytes, liveBytesOf(parts, number))) return
  await forEachEntry(parts, number, pace, async (id, place) => {
    if (!(await parts.log.head(id, place))) await moveAlone(parts, id, place)
  })
}
