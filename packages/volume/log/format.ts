/**
 * Encoding of superblocks and batch headers; pure.
 *
 * All numbers are little-endian. A file starts with two copies of its superblock, a page each,
 * followed by data. A batch starts on a page boundary with its header; its records follow, aligned
 * to 8 bytes. Every checksum in a file is a CRC32C seeded with the volume's random identifier and
 * the file's generation, so that neither stale contents of a recycled file nor a client's bytes can
 * pass as a batch or a record.
 */
import { crc32c } from "@node-rs/crc32"
import { page_bytes } from "../extents/free-map.ts"

export { page_bytes, toPages } from "../extents/free-map.ts"

export type SegmentKind = "log" | "ext"

/** Offset of a file's data, after both copies of the superblock. */
export const data_start = 2 * page_bytes
/** Alignment of records. */
export const record_alignment = 8
export const batch_header_bytes = 96
/**
 * Maximum size of a batch in bytes: as much as one write and one sync handle without a long pause.
 */
export const batch_bytes_max = 8 * 1024 * 1024
export const volume_id_bytes = 16

/**
 * Format of the records in a file, stored in its superblock. A release refuses to open a volume
 * with a format above its own, because it would treat unknown records as damage. A file's format
 * rises with the first record that needs it, so the previous release can open the volume until then
 * (decision 0147).
 */
export const formats = {
  first: 1,
  /** Records may hold the time of their blob's last put. */
  put_times: 2,
} as const
const format_known = formats.put_times

const batch_version = 1
const superblock_magic = Buffer.from("ALMVOLUM", "latin1")
const batch_magic = Buffer.from("ALMBATCH", "latin1")
const superblock_bytes = 64
const two_32 = 2 ** 32

export const toRecords = (bytes: number) => Math.ceil(bytes / record_alignment) * record_alignment

export interface Superblock {
  readonly volume_id: Uint8Array
  readonly kind: SegmentKind
  /** From 1, per kind. */
  readonly number: number
  /** Unique in the volume. Changes each time the file is recycled. */
  readonly generation: number
  /** Length of the file. */
  readonly bytes: number
  /** One of `formats`. */
  readonly format: number
}

export interface BatchHeader {
  readonly generation: number
  /** Rises by one from batch to batch across the volume, from 1. */
  readonly sequence: number
  /** Size of the whole batch, a multiple of a page. */
  readonly bytes: number
  /** CRC of the previous batch's header; 0 for the first batch. */
  readonly previous_crc: number
  readonly records: number
  /** Cursor of the batch's first fact, or of the next fact if the batch has none. */
  readonly first_cursor: number
  readonly acknowledged: number
  /** CRC32C of the CRCs of the record heads, in order. */
  readonly heads_crc: number
  readonly file: number
  readonly position: number
}

/** A header as read, with its own CRC, which the next batch refers to. */
export interface ReadBatchHeader extends BatchHeader {
  readonly crc: number
}

/** Writes a number below 2^53 as a u64. */
export const writeNumber = (into: Buffer, value: number, position: number) => {
  into.writeUInt32LE(value >>> 0, position)
  into.writeUInt32LE(Math.floor(value / two_32), position + 4)
}

/** Reads a u64 as a number; Infinity from 2^53. */
export const readNumber = (from: Buffer, position: number) => {
  const value = from.readUInt32LE(position) + from.readUInt32LE(position + 4) * two_32
  return Number.isSafeInteger(value) ? value : Number.POSITIVE_INFINITY
}

/** Initial value of every checksum in a file. */
export const seedOf = ({
  volume_id,
  kind,
  number,
  generation,
}: Omit<Superblock, "bytes" | "format">) => {
  const text = Buffer.alloc(volume_id_bytes + 16)
  text.set(volume_id.subarray(0, volume_id_bytes))
  text.writeUInt32LE(kind === "log" ? 1 : 2, volume_id_bytes)
  text.writeUInt32LE(number, volume_id_bytes + 4)
  writeNumber(text, generation, volume_id_bytes + 8)
  return crc32c(text)
}

/** Encodes both copies: the first 8 KiB of a file. */
export const encodeSuperblock = (superblock: Superblock): Buffer => {
  const pages = Buffer.alloc(data_start)
  superblock_magic.copy(pages)
  pages.writeUInt32LE(superblock.format, 8)
  pages.writeUInt32LE(superblock.kind === "log" ? 1 : 2, 12)
  pages.set(superblock.volume_id.subarray(0, volume_id_bytes), 16)
  pages.writeUInt32LE(superblock.number, 32)
  writeNumber(pages, superblock.generation, 40)
  writeNumber(pages, superblock.bytes, 48)
  pages.writeUInt32LE(crc32c(pages.subarray(0, superblock_bytes - 4)), superblock_bytes - 4)
  pages.copy(pages, page_bytes, 0, superblock_bytes)
  return pages
}

const decodeCopy = (page: Buffer): Superblock | undefined => {
  if (page.length < superblock_bytes) return undefined
  if (!page.subarray(0, superblock_magic.length).equals(superblock_magic)) return undefined
  const crc = page.readUInt32LE(superblock_bytes - 4)
  if (crc !== crc32c(page.subarray(0, superblock_bytes - 4))) return undefined
  const format = page.readUInt32LE(8)
  if (format < formats.first || format > format_known) {
    const known = `this release supports formats up to ${format_known}`
    throw new Error(`a newer release wrote this volume: a file has format ${format}, ${known}`)
  }
  return {
    kind: page.readUInt32LE(12) === 1 ? "log" : "ext",
    volume_id: Buffer.from(page.subarray(16, 16 + volume_id_bytes)),
    number: page.readUInt32LE(32),
    generation: readNumber(page, 40),
    bytes: readNumber(page, 48),
    format,
  }
}

/**
 * Decodes the first 8 KiB of a file. Of two valid copies the newer one is used, because a crash may
 * leave one of each; undefined if neither is valid. Throws if a newer release wrote the file. A
 * format counts only if both copies have it, so that an interrupted rise is repeated.
 */
export const decodeSuperblock = (pages: Buffer): Superblock | undefined => {
  const first = decodeCopy(pages)
  const second = decodeCopy(pages.subarray(page_bytes))
  if (!first || !second) return first ?? second
  if (first.generation !== second.generation) {
    return first.generation > second.generation ? first : second
  }
  return { ...first, format: Math.min(first.format, second.format) }
}

/** Writes a header. Returns its CRC. */
export const encodeBatchHeader = (
  into: Buffer,
  position: number,
  header: BatchHeader,
  seed: number,
): number => {
  into.fill(0, position, position + batch_header_bytes)
  batch_magic.copy(into, position)
  into.writeUInt32LE(batch_version, position + 8)
  into.writeUInt32LE(header.records, position + 12)
  writeNumber(into, header.generation, position + 16)
  writeNumber(into, header.sequence, position + 24)
  into.writeUInt32LE(header.bytes, position + 32)
  into.writeUInt32LE(header.previous_crc, position + 36)
  writeNumber(into, header.first_cursor, position + 40)
  writeNumber(into, header.acknowledged, position + 48)
  into.writeUInt32LE(header.file, position + 64)
  into.writeUInt32LE(header.heads_crc, position + 68)
  writeNumber(into, header.position, position + 72)
  const end = position + batch_header_bytes - 4
  const crc = crc32c(into.subarray(position, end), seed)
  into.writeUInt32LE(crc, end)
  return crc
}

/** The generation in the header at a position, not verified; 0 if there is no header. */
export const claimedGeneration = (from: Buffer, position: number) => {
  if (position + batch_header_bytes > from.length) return 0
  const is_header = from.compare(batch_magic, 0, 8, position, position + 8) === 0
  return is_header ? readNumber(from, position + 16) : 0
}

/** Decodes the header at a position. Undefined if there is no valid one. */
export const decodeBatchHeader = (
  from: Buffer,
  position: number,
  seed: number,
): ReadBatchHeader | undefined => {
  const end = position + batch_header_bytes - 4
  if (end + 4 > from.length) return undefined
  if (from.compare(batch_magic, 0, batch_magic.length, position, position + 8) !== 0) {
    return undefined
  }
  const crc = from.readUInt32LE(end)
  if (crc !== crc32c(from.subarray(position, end), seed)) return undefined
  return {
    crc,
    records: from.readUInt32LE(position + 12),
    generation: readNumber(from, position + 16),
    sequence: readNumber(from, position + 24),
    bytes: from.readUInt32LE(position + 32),
    previous_crc: from.readUInt32LE(position + 36),
    first_cursor: readNumber(from, position + 40),
    acknowledged: readNumber(from, position + 48),
    file: from.readUInt32LE(position + 64),
    heads_crc: from.readUInt32LE(position + 68),
    position: readNumber(from, position + 72),
  }
}
