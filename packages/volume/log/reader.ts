/** Reads the log: records by place, and batches in order. */
import { crc32c } from "@node-rs/crc32"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { LogReader, ReadRecord, Segment, Segments } from "../parts.ts"
import {
  batch_header_bytes,
  data_start,
  decodeBatchHeader,
  page_bytes,
  type ReadBatchHeader,
  record_alignment,
  toRecords,
} from "./format.ts"
import {
  type BlobTail,
  decodeHead,
  decodeTail,
  isPayloadIntact,
  type RecordHead,
  tail_bytes,
} from "./record.ts"

/** Read size for a head. Nearly all heads are shorter. */
const head_read_bytes = 1024
/** Hex digits of an id. */
const id_digits = 32
/** Read size of a search for batches, in bytes. */
const search_bytes = 1024 * 1024

const asBuffer = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Reads records at the places that the index holds. */
export const makeLogReader = (segments: Segments): LogReader => {
  const read = async (id: BlobId, file: number, position: number, length: number) => {
    const segment = segments.find("log", file)
    if (!segment) return undefined
    const bytes = asBuffer(await segment.file.read(position, length))
    const head = decodeHead(bytes, 0, segment.seed)
    return head?.id === id ? { head, bytes } : undefined
  }
  return {
    record: async (id, { file, position, bytes: length }): Promise<ReadRecord | undefined> => {
      const found = await read(id, file, position, length)
      if (found?.head.record_bytes !== length) return undefined
      const { head, bytes } = found
      const payload = bytes.subarray(head.head_bytes, head.head_bytes + head.payload_bytes)
      return { head, payload }
    },
    head: async (id, { file, position, bytes }) => {
      const first = await read(id, file, position, Math.min(bytes, head_read_bytes))
      const found = first ?? (bytes > head_read_bytes && (await read(id, file, position, bytes)))
      return found ? found.head : undefined
    },
    tail: async (id, { file, position, bytes }) => {
      const segment = segments.find("log", file)
      if (!segment || bytes < tail_bytes) return undefined
      const end = await segment.file.read(position + bytes - tail_bytes, tail_bytes)
      const tail = decodeTail(asBuffer(end), segment.seed)
      return tail?.hash.startsWith(id) ? tail : undefined
    },
  }
}

/** A record with its position in the file. */
export interface LoggedRecord {
  readonly head: RecordHead
  readonly position: number
}

/** A blob's record with a corrupt head, described by its tail. */
export interface HeadlessRecord {
  readonly id: BlobId
  readonly tail: BlobTail
  /** Start of the bytes that no head covers. The record starts here or later. */
  readonly position: number
  /** Length from there to the end of the tail. */
  readonly bytes: number
}

/** The valid records of a span of the log. */
export interface Salvaged {
  readonly records: ReadonlyArray<LoggedRecord>
  readonly headless: ReadonlyArray<HeadlessRecord>
}

/** A batch as read: its records with a valid head, or at least a valid tail. */
export interface ReadBatch extends Salvaged {
  readonly header: ReadBatchHeader
  readonly bytes: Buffer
  /** Whether all heads that the header counts are valid. */
  readonly is_whole: boolean
}

const isOfSegment = (segment: Segment, position: number, header: ReadBatchHeader) =>
  header.generation === segment.generation &&
  header.file === segment.number &&
  header.position === position &&
  header.bytes >= page_bytes &&
  header.bytes % page_bytes === 0 &&
  position + header.bytes <= segment.bytes

/** Reads the header of the batch at a position. Undefined if there is no valid one. */
export const readHeader = async (segment: Segment, position: number) => {
  if (position + page_bytes > segment.bytes) return undefined
  const page = asBuffer(await segment.file.read(position, batch_header_bytes))
  const header = decodeBatchHeader(page, 0, segment.seed)
  return header && isOfSegment(segment, position, header) ? header : undefined
}

/**
 * Finds the first batch from a position on with a higher sequence. May read the rest of the file.
 */
export const searchHeader = async (segment: Segment, position: number, sequence: number) => {
  const window = Buffer.allocUnsafeSlow(Math.min(search_bytes, segment.bytes))
  for (let start = position; start < segment.bytes; start += search_bytes) {
    const length = Math.min(search_bytes, segment.bytes - start)
    const bytes = asBuffer(await segment.file.read(start, length, window))
    for (let page = 0; page < bytes.length; page += page_bytes) {
      const header = decodeBatchHeader(bytes, page, segment.seed)
      if (!header || !isOfSegment(segment, start + page, header)) continue
      if (header.sequence > sequence) return header
    }
  }
  return undefined
}

/**
 * Finds the valid records in a span of the log that starts at `position` in its file. Looks for
 * each head right after the previous record, then at every aligned offset. A tail found on the way
 * belongs to a corrupt head.
 */
const recordsIn = (bytes: Buffer, position: number, seed: number, start = 0): Salvaged => {
  const records: Array<LoggedRecord> = []
  const headless: Array<HeadlessRecord> = []
  let covered_end = start
  for (let at = start; at < bytes.length; ) {
    const head = decodeHead(bytes, at, seed)
    if (head && at + head.record_bytes <= bytes.length) {
      records.push({ head, position: position + at })
      at += toRecords(head.record_bytes)
      covered_end = at
      continue
    }
    const tail = decodeTail(bytes.subarray(at, at + tail_bytes), seed)
    at += tail ? tail_bytes : record_alignment
    if (!tail) continue
    // Sixteen bytes in hex are an id: the first half of the hash.
    const id = tail.hash.slice(0, id_digits) as BlobId
    headless.push({ id, tail, position: position + covered_end, bytes: at - covered_end })
    covered_end = at
  }
  return { records, headless }
}

/** CRC32C of the CRCs of a batch's heads, in order. */
export const headsCrc = (crcs: ReadonlyArray<number>) => {
  const bytes = Buffer.allocUnsafe(4 * crcs.length)
  for (let n = 0; n < crcs.length; n++) bytes.writeUInt32LE(crcs[n] ?? 0, 4 * n)
  return crc32c(bytes)
}

/** Reads a batch's records, including those after a corrupt one. */
export const readBatch = async (segment: Segment, header: ReadBatchHeader): Promise<ReadBatch> => {
  const bytes = asBuffer(await segment.file.read(header.position, header.bytes))
  const start = toRecords(batch_header_bytes)
  const records: Array<LoggedRecord> = []
  let at = start
  while (records.length < header.records) {
    const head = decodeHead(bytes, at, segment.seed)
    if (!head || at + head.record_bytes > bytes.length) break
    records.push({ head, position: header.position + at })
    at += toRecords(head.record_bytes)
  }
  const crc = headsCrc(records.map(({ head }) => head.crc))
  const is_whole = records.length === header.records && crc === header.heads_crc
  if (is_whole) return { header, bytes, records, headless: [], is_whole }
  return { header, bytes, is_whole, ...recordsIn(bytes, header.position, segment.seed, start) }
}

/** Whether the inline payloads of a batch are intact too. */
export const arePayloadsIntact = ({ header, bytes, records }: ReadBatch) =>
  records.every(({ head, position }) => {
    const start = position - header.position + head.head_bytes
    return isPayloadIntact(head, bytes.subarray(start, start + head.payload_bytes))
  })

/** Finds valid records in a span of a log file without a valid batch. */
export const salvage = async (segment: Segment, start: number, end: number) => {
  const bytes = asBuffer(await segment.file.read(start, end - start))
  return recordsIn(bytes, start, segment.seed)
}

/** The header of a file's first batch, if valid. */
export const firstBatchOf = (segment: Segment) => readHeader(segment, data_start)
