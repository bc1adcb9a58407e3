/**
 * Encodes a batch as the parts of one write: heads in a reused buffer, payloads without copying.
 */

import type { Segment } from "../parts.ts"
import {
  batch_header_bytes,
  encodeBatchHeader,
  formats,
  page_bytes,
  toPages,
  toRecords,
} from "./format.ts"
import { headsCrc } from "./reader.ts"
import {
  encodeHead,
  encodeTail,
  headBytesMax,
  type NewRecord,
  recordBytes,
  tail_bytes,
} from "./record.ts"

/** A record to be written. */
export interface BatchRecord {
  readonly record: NewRecord
  /** The inline payload. */
  readonly parts: ReadonlyArray<Uint8Array>
  /** Position of the record in its file, set by the encoder. */
  position: number
  /** Length of the whole record, set by the encoder. */
  bytes: number
}

/** Where a batch is written, and which batch it follows. */
export interface BatchPlace {
  readonly segment: Segment
  readonly position: number
  readonly sequence: number
  readonly previous_crc: number
  readonly first_cursor: number
  readonly acknowledged: number
}

export interface EncodedBatch {
  readonly parts: ReadonlyArray<Uint8Array>
  readonly bytes: number
  /** CRC of the batch's header. */
  readonly crc: number
}

/**
 * Payloads up to this size are copied next to their heads, which is cheaper than another part of a
 * write: with 32 puts of 4 KiB in a batch, 9 us of processor time each instead of 9.6.
 */
const copied_bytes_max = 8192

const zero_page = Buffer.alloc(page_bytes)

/** Upper bound of a record's length, in bytes. */
export const recordBytesMax = (record: NewRecord) =>
  recordBytes(record.kind, headBytesMax(record), record.payload_bytes)

/** Upper bound of the length of a batch with this many bytes of records. */
export const batchBytesMax = (records_bytes: number) => toPages(batch_header_bytes + records_bytes)

/** The format that a file needs to hold these records. Older releases cannot read a higher one. */
export const formatOf = (records: ReadonlyArray<BatchRecord>) =>
  records.some(({ record }) => record.put_at !== 0n) ? formats.put_times : formats.first

/** Encodes one batch at a time: its parts must be written before the next call. */
export const makeBatchEncoder = () => {
  let heads = Buffer.allocUnsafeSlow(256 * 1024)

  const roomFor = (records: ReadonlyArray<BatchRecord>) => {
    let bytes = batch_header_bytes
    for (const { record } of records) {
      const copied_bytes = Math.min(record.payload_bytes, copied_bytes_max)
      bytes += headBytesMax(record) + copied_bytes + tail_bytes + 16
    }
    if (bytes > heads.length) heads = Buffer.allocUnsafeSlow(2 * bytes)
  }
  return (records: ReadonlyArray<BatchRecord>, place: BatchPlace): EncodedBatch => {
    roomFor(records)
    const { segment, position } = place
    const parts: Array<Uint8Array> = []
    const crcs: Array<number> = []
    // `at` is an offset in `heads`; `bytes` is an offset in the batch, which counts payloads too.
    let part_start = 0
    let at = batch_header_bytes
    let bytes = batch_header_bytes
    for (const entry of records) {
      const { payload_bytes } = entry.record
      const head_bytes = encodeHead(heads, at, entry.record, segment.seed)
      crcs.push(heads.readUInt32LE(at + head_bytes - 4))
      entry.position = position + bytes
      entry.bytes = recordBytes(entry.record.kind, head_bytes, payload_bytes)
      at += head_bytes
      if (payload_bytes <= copied_bytes_max) {
        for (const part of entry.parts) {
          heads.set(part, at)
          at += part.length
        }
      } else {
        parts.push(heads.subarray(part_start, at))
        for (const part of entry.parts) parts.push(part)
        part_start = at
      }
      const padding = toRecords(payload_bytes) - payload_bytes
      heads.fill(0, at, at + padding)
      at += padding
      if (entry.record.kind === "blob") {
        encodeTail(heads, at, entry.record, segment.seed)
        at += tail_bytes
      }
      bytes += entry.bytes
    }
    parts.push(heads.subarray(part_start, at))
    const padding = toPages(bytes) - bytes
    if (padding > 0) parts.push(zero_page.subarray(0, padding))
    const header = {
      generation: segment.generation,
      sequence: place.sequence,
      bytes: bytes + padding,
      previous_crc: place.previous_crc,
      records: records.length,
      first_cursor: place.first_cursor,
      acknowledged: place.acknowledged,
      heads_crc: headsCrc(crcs),
      file: segment.number,
      position,
    }
    return { parts, bytes: bytes + padding, crc: encodeBatchHeader(heads, 0, header, segment.seed) }
  }
}
