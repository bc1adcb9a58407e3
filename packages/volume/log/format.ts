/**
 * What a volume's files begin with, and what each batch of its log begins with: pure encoding.
 *
 * All numbers are little endian. A file is two copies of its superblock, a page each, then data. A
 * batch begins at a page with its header; its records follow, each at a multiple of 8 bytes. All
 * checksums of a file are CRC32C that begin with the file's seed, which holds the volume's random
 * identifier and the file's generation: nothing that a file held before, and nothing that a client
 * stores, can look like a batch or a record.
 */
import { crc32c } from "@node-rs/crc32"
import { page_bytes } from "../extents/room.ts"

export { page_bytes, toPages } from "../extents/room.ts"

export type SegmentKind = "log" | "ext"

/** Where a file's data begins: behind both copies of its superblock. */
export const data_start = 2 * page_bytes
/** Records begin at multiples of this. */
export const record_alignment = 8
export const batch_header_bytes = 96
/** One batch at most, in bytes: what one write and one sync carry without a long pause. */
export const batch_bytes_max = 8 * 1024 * 1024
export const volume_id_bytes = 16

/**
 * What a file's superblock says of the records in it. A release that meets a higher one does not
 * open the volume: it would take for damaged what it cannot read. So a file is raised when the
 * first such record goes into it, and until then the release before can open it (decision 0147).
 */
export const formats = {
  first: 1,
  /** Records may say when their blob was put last. */
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
  /** The file's number, from 1, by its kind. */
  readonly number: number
  /** Unique in the volume, and another each time that the file is used anew. */
  readonly generation: number
  /** The file's length. */
  readonly bytes: number
  /** One of `formats`. */
  readonly format: number
}

export interface BatchHeader {
  readonly generation: number
  /** Rises by one from batch to batch, over the whole volume, from 1. */
  readonly sequence: number
  /** The whole batch, a multiple of a page. */
  readonly bytes: number
  /** The CRC of the header of the batch before; 0 for the first. */
  readonly previous_crc: number
  readonly records: number
  /** The cursor of the batch's first fact, or of the next one where it has none. */
  readonly first_cursor: number
  readonly acknowledged: number
  /** CRC32C of the CRCs of the records' heads, in order. */
  readonly heads_crc: number
  readonly file: number
  readonly position: number
}

/** A header as it was read, with its own CRC, which the next batch names. */
export interface ReadBatchHeader extends BatchHeader {
  readonly crc: number
}

/** Numbers below 2^53 as u64. */
export const writeNumber = (into: Buffer, value: number, position: number) => {
  into.writeUInt32LE(value >>> 0, position)
  into.writeUInt32LE(Math.floor(value / two_32), position + 4)
}

/** A u64 as a number; Infinity where it is beyond 2^53. */
export const readNumber = (from: Buffer, position: number) => {
  const value = from.readUInt32LE(position) + from.readUInt32LE(position + 4) * two_32
  return Number.isSafeInteger(value) ? value : Number.POSITIVE_INFINITY
}

/** What all checksums of a file begin with. */
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

/** Both copies, as the first 8 KiB of a file. */
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
    const known = `this release knows no format above ${format_known}`
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
 * What the first 8 KiB of a file say: the newer of the copies that hold, since a crash may leave
 * one of either; undefined where none does. Throws where a newer release wrote it. A format counts
 * once both say it, so that a rise that a crash cut short is made again.
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

/** Writes a header; answers its CRC. */
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

/** The generation that a header at a position claims, unchecked; 0 where there is none. */
export const claimedGeneration = (from: Buffer, position: number) => {
  if (position + batch_header_bytes > from.length) return 0
  const is_header = from.compare(batch_magic, 0, 8, position, position + 8) === 0
  return is_header ? readNumber(from, position + 16) : 0
}

/** The header at a position of the bytes; undefined where there is none that holds. */
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
