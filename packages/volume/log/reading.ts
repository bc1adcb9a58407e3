/**
 * Reading a volume's log: records by their place, batches and their records in order.
 */
import { crc32c } from "@node-rs/crc32"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { LogReads, ReadRecord, Segment, Segments } from "../parts.ts"
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
  decodeHead,
  decodeTail,
  type KnownBlob,
  payloadHolds,
  type RecordHead,
  tail_bytes,
} from "./record.ts"

/** Read at once where only a head is wanted: nearly all heads are shorter. */
const head_read_bytes = 1024
/** An identifier's digits. */
const id_digits = 32
/** Read at once where batches are looked for, in bytes. */
const search_bytes = 1024 * 1024

const asBuffer = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The records of the log by their places, which the index has. */
export const makeLogReads = (segments: Segments): LogReads => {
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
    known: async (id, { file, position, bytes }) => {
      const segment = segments.find("log", file)
      if (!segment || bytes < tail_bytes) return undefined
      const tail = await segment.file.read(position + bytes - tail_bytes, tail_bytes)
      const known = decodeTail(asBuffer(tail), segment.seed)
      return known?.hash.startsWith(id) ? known : undefined
    },
  }
}

/** A record with its place in its file. */
export interface LoggedRecord {
  readonly head: RecordHead
  readonly position: number
}

/** A blob's record whose head does not hold, as its tail tells of it. */
export interface HeadlessRecord {
  readonly id: BlobId
  readonly known: KnownBlob
  /** Where the bytes begin that no head explains: the record begins there, or behind it. */
  readonly position: number
  /** From there to the end of the tail. */
  readonly bytes: number
}

/** What holds in a stretch of the log. */
export interface Salvaged {
  readonly records: ReadonlyArray<LoggedRecord>
  readonly headless: ReadonlyArray<HeadlessRecord>
}

/** A batch as it was read: its records, as far as their heads hold, or at least their tails. */
export interface ReadBatch extends Salvaged {
  readonly header: ReadBatchHeader
  readonly bytes: Buffer
  /** Whether every head that the header speaks of is there and holds. */
  readonly is_whole: boolean
}

const isOfSegment = (segment: Segment, position: number, header: ReadBatchHeader) =>
  header.generation === segment.generation &&
  header.file === segment.number &&
  header.position === position &&
  header.bytes >= page_bytes &&
  header.bytes % page_bytes === 0 &&
  position + header.bytes <= segment.bytes

/** The header of the batch that begins at a position; undefined where none does. */
export const readHeader = async (segment: Segment, position: number) => {
  if (position + page_bytes > segment.bytes) return undefined
  const page = asBuffer(await segment.file.read(position, batch_header_bytes))
  const header = decodeBatchHeader(page, 0, segment.seed)
  return header && isOfSegment(segment, position, header) ? header : undefined
}

/** The first batch from a position on whose sequence is higher; reads the rest of the file. */
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
 * The records that hold in a stretch of the log, whose first byte is at `position` in its file:
 * each head is looked for behind the one before, and then at every place where one may begin. A
 * tail that is met on the way is one of a head that does not hold.
 */
const recordsIn = (bytes: Buffer, position: number, seed: number, start = 0): Salvaged => {
  const records: Array<LoggedRecord> = []
  const headless: Array<HeadlessRecord> = []
  let explained = start
  for (let at = start; at < bytes.length; ) {
    const head = decodeHead(bytes, at, seed)
    if (head && at + head.record_bytes <= bytes.length) {
      records.push({ head, position: position + at })
      at += toRecords(head.record_bytes)
      explained = at
      continue
    }
    const known = decodeTail(bytes.subarray(at, at + tail_bytes), seed)
    at += known ? tail_bytes : record_alignment
    if (!known) continue
    // Sixteen bytes in hex are an identifier: the first half of the hash.
    const id = known.hash.slice(0, id_digits) as BlobId
    headless.push({ id, known, position: position + explained, bytes: at - explained })
    explained = at
  }
  return { records, headless }
}

/** CRC32C of the CRCs of a batch's heads, in order. */
export const headsCrc = (crcs: ReadonlyArray<number>) => {
  const bytes = Buffer.allocUnsafe(4 * crcs.length)
  for (let n = 0; n < crcs.length; n++) bytes.writeUInt32LE(crcs[n] ?? 0, 4 * n)
  return crc32c(bytes)
}

/** Reads a batch's records; those behind one that does not hold are found all the same. */
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

/** Whether the inline payloads of a batch are what was put as well. */
export const payloadsHold = ({ header, bytes, records }: ReadBatch) =>
  records.every(({ head, position }) => {
    const start = position - header.position + head.head_bytes
    return payloadHolds(head, bytes.subarray(start, start + head.payload_bytes))
  })

/** What holds in a stretch of a log file in which no batch does. */
export const salvage = async (segment: Segment, start: number, end: number) => {
  const bytes = asBuffer(await segment.file.read(start, end - start))
  return recordsIn(bytes, start, segment.seed)
}

/** The header of a file's first batch, where it holds. */
export const firstBatchOf = (segment: Segment) => readHeader(segment, data_start)
