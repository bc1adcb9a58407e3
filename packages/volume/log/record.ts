/**
 * Encoding of log records; pure.
 *
 * A record is a head, the payload of a small blob, and a blob's tail. The head holds everything
 * known about a blob, so that the log alone is authoritative. The tail repeats what must be
 * reported if the head is corrupt: the blob's hash, size and policy. Both end with a CRC32C seeded
 * for the file.
 */
import { crc32c } from "@node-rs/crc32"
import type { Shard } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { crc_bytes, firstMismatch, tableBytes } from "../reads/chunks.ts"
import { copyBytes } from "../writes/copy-admission.ts"
import { batch_bytes_max, readNumber, toRecords, writeNumber } from "./format.ts"

export type RecordKind = "blob" | "tombstone" | "quarantined" | "lost" | "released"

/** A span of an extent file that holds a part of a large blob, followed by the part's CRC table. */
export interface Extent {
  /** Number of the extent file. */
  readonly file: number
  readonly position: number
  /** Bytes of the blob in it. Its CRC table follows immediately. */
  readonly bytes: number
  /** CRC32C of the table. */
  readonly table_crc: number
}

/** The contents of a record, except its payload. */
export interface NewRecord {
  readonly kind: RecordKind
  /** Rewritten by compaction: keeps its cursor and time, and is not a new fact. */
  readonly is_moved: boolean
  readonly is_large: boolean
  readonly policy: ReplicationPolicy
  readonly id: BlobId
  /** The blob's BLAKE3-256 in hex; empty if unknown. */
  readonly hash: string
  /** Size of the blob in bytes. */
  readonly size: number
  /** Which shard of the blob it is. Undefined: the whole blob. */
  readonly shard: Shard | undefined
  /** When this node wrote it, in Unix nanoseconds. */
  readonly at: bigint
  /** When the blob was first put on any node, or was deleted; 0: `at`. */
  readonly since: bigint
  /** For a tombstone: time of the last cluster-wide deletion; 0: none. */
  readonly cluster_at: bigint
  /** When the blob was last put, as far as this node knows; 0: when it was first put. */
  readonly put_at: bigint
  /** Cursor of the record's fact; 0 if it has none. */
  readonly cursor: number
  readonly origin: BlobOrigin
  readonly labels: BlobLabels
  readonly payload_bytes: number
  /** CRC32C of each 64 KiB chunk of the payload, as `reads/chunks.ts` computes them. */
  readonly crcs: ReadonlyArray<number>
  /** Extents of a large blob. */
  readonly extents: ReadonlyArray<Extent>
  /** Extents that this record frees. */
  readonly freed: ReadonlyArray<Extent>
}

/** A decoded head. The functions below decode rarely used fields on demand. */
export interface RecordHead {
  readonly kind: RecordKind
  readonly is_moved: boolean
  readonly is_large: boolean
  readonly policy: ReplicationPolicy
  readonly id: BlobId
  readonly size: number
  readonly at: bigint
  readonly cursor: number
  readonly payload_bytes: number
  readonly head_bytes: number
  /** Head, payload, padding and tail, a multiple of 8. The index holds this length. */
  readonly record_bytes: number
  /** The head's CRC. */
  readonly crc: number
  /** The encoded head. */
  readonly bytes: Buffer
}

const magic = 0x3143_4552
const tail_magic = 0x4c49_4154
export const tail_bytes = 64
const fixed_bytes = 112
const extent_bytes = 24
const flag_moved = 1
const flag_large = 2
const flag_hash = 4
const flag_since = 8
const flag_cluster = 16
const flag_put = 32
/** Optional times, in the order of the format. */
const time_flags = [flag_since, flag_cluster, flag_put] as const
const time_bytes = 8
/** Maximum UTF-16 length of a field of an origin; longer ones are truncated. */
const origin_units_max = 4096

/** In the order of the format: a kind's number is its position, from 1. */
const kinds = ["blob", "tombstone", "quarantined", "lost", "released"] as const
const policies = [
  "REPLICATION_POLICY_UNSPECIFIED",
  "REPLICATION_POLICY_NONE",
  "REPLICATION_POLICY_REPLICA2",
  "REPLICATION_POLICY_REPLICA3",
  "REPLICATION_POLICY_EC42",
  "REPLICATION_POLICY_EC82",
] as const

const no_labels: BlobLabels = {}

const isEmpty = (labels: BlobLabels) => {
  for (const _ in labels) return false
  return true
}

const labelText = (labels: BlobLabels) => (isEmpty(labels) ? "" : JSON.stringify(labels))

export const cut = (text: string) =>
  text.length > origin_units_max ? text.slice(0, origin_units_max) : text

/** Upper bound of the head's length, in bytes. */
export const headBytesMax = ({ origin, labels, crcs, extents, freed }: NewRecord) => {
  const { actor, request_id, correlation_id } = origin
  const text = cut(actor).length + cut(request_id).length + cut(correlation_id).length
  const tables = crc_bytes * crcs.length + extent_bytes * (extents.length + freed.length)
  // A UTF-16 code unit takes at most three bytes in UTF-8. The rest is times, padding and the CRC.
  const texts = 3 * (text + labelText(labels).length)
  return fixed_bytes + texts + tables + time_flags.length * time_bytes + 24
}

const writeOrigin = (into: Buffer, position: number, origin: BlobOrigin) => {
  const actor = cut(origin.actor)
  const request_id = cut(origin.request_id)
  const correlation_id = cut(origin.correlation_id)
  into.writeUInt16LE(actor.length, position + 88)
  into.writeUInt16LE(request_id.length, position + 90)
  into.writeUInt16LE(correlation_id.length, position + 92)
  const bytes = into.write(actor + request_id + correlation_id, position + fixed_bytes)
  into.writeUInt32LE(bytes, position + 96)
  return bytes
}

const writeExtents = (into: Buffer, position: number, extents: ReadonlyArray<Extent>) => {
  let at = position
  for (const { file, table_crc, position: start, bytes } of extents) {
    into.writeUInt32LE(file, at)
    into.writeUInt32LE(table_crc, at + 4)
    writeNumber(into, start, at + 8)
    writeNumber(into, bytes, at + 16)
    at += extent_bytes
  }
  return at
}

const flagsOf = ({ is_moved, is_large, hash, since, cluster_at, put_at }: NewRecord) =>
  (is_moved ? flag_moved : 0) |
  (is_large ? flag_large : 0) |
  (hash === "" ? 0 : flag_hash) |
  (since === 0n ? 0 : flag_since) |
  (cluster_at === 0n ? 0 : flag_cluster) |
  (put_at === 0n ? 0 : flag_put)

const writeFixed = (into: Buffer, position: number, record: NewRecord) => {
  const has_hash = record.hash !== ""
  const { shard } = record
  into.writeUInt32LE(magic, position)
  into[position + 4] = kinds.indexOf(record.kind) + 1
  into[position + 5] = flagsOf(record)
  into[position + 6] = policies.indexOf(record.policy)
  into[position + 7] = shard?.data_shards ?? 0
  into.writeUInt32LE(record.payload_bytes, position + 12)
  if (has_hash) into.write(record.hash, position + 32, "hex")
  else into.fill(0, position + 32, position + 64)
  // The id is usually the first half of the hash, and copying is cheaper than decoding hex again.
  if (record.hash.startsWith(record.id))
    into.copyWithin(position + 16, position + 32, position + 48)
  else into.write(record.id, position + 16, "hex")
  writeNumber(into, record.size, position + 64)
  into.writeBigUInt64LE(record.at, position + 72)
  writeNumber(into, record.cursor, position + 80)
  into.writeUInt16LE(shard?.index ?? 0, position + 94)
  into.writeUInt32LE(record.extents.length, position + 104)
  into.writeUInt32LE(record.freed.length, position + 108)
}

/** Writes a head, aligned to 8, to at least `headBytesMax` bytes. Returns its aligned length. */
export const encodeHead = (
  into: Buffer,
  position: number,
  record: NewRecord,
  seed: number,
): number => {
  writeFixed(into, position, record)
  const labels = labelText(record.labels)
  const origin_bytes = writeOrigin(into, position, record.origin)
  const labels_at = position + fixed_bytes + origin_bytes
  const labels_bytes = labels === "" ? 0 : into.write(labels, labels_at)
  into.writeUInt32LE(labels_bytes, position + 100)
  let at = labels_at + labels_bytes
  for (const crc of record.crcs) {
    into.writeUInt32LE(crc, at)
    at += crc_bytes
  }
  at = writeExtents(into, at, record.extents)
  at = writeExtents(into, at, record.freed)
  for (const time of [record.since, record.cluster_at, record.put_at]) {
    if (time !== 0n) at = into.writeBigUInt64LE(time, at)
  }
  const head_bytes = toRecords(at - position + crc_bytes)
  into.fill(0, at, position + head_bytes)
  into.writeUInt32LE(head_bytes, position + 8)
  const end = position + head_bytes - crc_bytes
  into.writeUInt32LE(crc32c(into.subarray(position, end), seed), end)
  return head_bytes
}

/** Length of a whole record. The next record follows it. */
export const recordBytes = (kind: RecordKind, head_bytes: number, payload_bytes: number) =>
  head_bytes + toRecords(payload_bytes) + (kind === "blob" ? tail_bytes : 0)

/** The contents of a blob's tail. */
export type BlobTail = Pick<NewRecord, "hash" | "size" | "policy" | "shard">

/** Writes a blob's tail. */
export const encodeTail = (into: Buffer, position: number, record: BlobTail, seed: number) => {
  into.fill(0, position, position + tail_bytes)
  into.writeUInt32LE(tail_magic, position)
  into[position + 4] = policies.indexOf(record.policy)
  into[position + 5] = record.shard?.data_shards ?? 0
  into[position + 6] = record.shard?.index ?? 0
  writeNumber(into, record.size, position + 8)
  into.write(record.hash, position + 16, "hex")
  const end = position + tail_bytes - crc_bytes
  into.writeUInt32LE(crc32c(into.subarray(position, end), seed), end)
}

const shardFrom = (data_shards = 0, index = 0): Shard | undefined =>
  data_shards === 0 ? undefined : { index, data_shards }

/** Decodes a tail. Undefined if it is not valid. */
export const decodeTail = (bytes: Buffer, seed: number): BlobTail | undefined => {
  const end = tail_bytes - crc_bytes
  if (bytes.length !== tail_bytes || bytes.readUInt32LE(0) !== tail_magic) return undefined
  if (bytes.readUInt32LE(end) !== crc32c(bytes.subarray(0, end), seed)) return undefined
  const policy = policies[bytes[4] ?? 0]
  if (!policy) return undefined
  const shard = shardFrom(bytes[5], bytes[6])
  return { policy, shard, size: readNumber(bytes, 8), hash: bytes.toString("hex", 16, 48) }
}

/** The length in a head's first bytes; 0 if they cannot belong to a head. */
export const headBytesAt = (from: Buffer, position: number): number => {
  if (position + 16 > from.length || from.readUInt32LE(position) !== magic) return 0
  const bytes = from.readUInt32LE(position + 8)
  const is_length = bytes % 8 === 0 && bytes > fixed_bytes && bytes <= batch_bytes_max
  return is_length ? bytes : 0
}

const textsEnd = (bytes: Buffer) => fixed_bytes + bytes.readUInt32LE(96) + bytes.readUInt32LE(100)
const extentsAt = (head: RecordHead) => textsEnd(head.bytes) + tableBytes(head.payload_bytes)

/** Offset of the optional times. */
const timesAt = (bytes: Buffer, payload_bytes: number) => {
  const extents = bytes.readUInt32LE(104) + bytes.readUInt32LE(108)
  return textsEnd(bytes) + tableBytes(payload_bytes) + extent_bytes * extents
}

const hasFlag = (bytes: Buffer, flag: number) => ((bytes[5] ?? 0) & flag) !== 0

const isWhole = (bytes: Buffer, payload_bytes: number) => {
  const times = time_flags.filter((flag) => hasFlag(bytes, flag)).length
  const end = timesAt(bytes, payload_bytes) + time_bytes * times
  return toRecords(end + crc_bytes) === bytes.length
}

/** An optional time. Undefined if the record does not have it. */
const timeIn = ({ bytes, payload_bytes }: RecordHead, wanted: (typeof time_flags)[number]) => {
  if (!hasFlag(bytes, wanted)) return undefined
  // Each flag is one bit, and earlier times have smaller flags.
  const before = time_flags.filter((flag) => flag < wanted && hasFlag(bytes, flag)).length
  return bytes.readBigUInt64LE(timesAt(bytes, payload_bytes) + time_bytes * before)
}

/** Decodes the head at a position. Undefined if it is missing, incomplete or corrupt. */
export const decodeHead = (
  from: Buffer,
  position: number,
  seed: number,
): RecordHead | undefined => {
  const head_bytes = headBytesAt(from, position)
  if (head_bytes === 0 || position + head_bytes > from.length) return undefined
  const bytes = from.subarray(position, position + head_bytes)
  const end = head_bytes - crc_bytes
  const crc = bytes.readUInt32LE(end)
  if (crc !== crc32c(bytes.subarray(0, end), seed)) return undefined
  const kind = kinds[(bytes[4] ?? 0) - 1]
  const policy = policies[bytes[6] ?? 0]
  const payload_bytes = bytes.readUInt32LE(12)
  if (!kind || !policy || !isWhole(bytes, payload_bytes)) return undefined
  return {
    kind,
    policy,
    is_moved: hasFlag(bytes, flag_moved),
    is_large: hasFlag(bytes, flag_large),
    // Sixteen bytes in hex are an id.
    id: bytes.toString("hex", 16, 32) as BlobId,
    size: readNumber(bytes, 64),
    at: bytes.readBigUInt64LE(72),
    cursor: readNumber(bytes, 80),
    payload_bytes,
    head_bytes,
    record_bytes: recordBytes(kind, head_bytes, payload_bytes),
    crc,
    bytes,
  }
}

/** BLAKE3-256 in hex; empty if unknown. */
export const hashOf = ({ bytes }: RecordHead) =>
  hasFlag(bytes, flag_hash) ? bytes.toString("hex", 32, 64) : ""

/** BLAKE3-256 in base64; empty if unknown. */
export const checksumOf = ({ bytes }: RecordHead) =>
  hasFlag(bytes, flag_hash) ? bytes.toString("base64", 32, 64) : ""

/** The shard that the record describes. Undefined: the whole blob. */
export const shardOf = ({ bytes }: RecordHead) => shardFrom(bytes[7], bytes.readUInt16LE(94))

/** Size of the copy in bytes: of the blob, or of its shard. */
export const heldBytesOf = (head: RecordHead) =>
  head.bytes[7] === 0 ? head.size : copyBytes(head.size, shardOf(head))

/** When the blob was first put on any node, or was deleted, in Unix nanoseconds. */
export const sinceOf = (head: RecordHead) => timeIn(head, flag_since) ?? head.at

/** For a tombstone: time of the last cluster-wide deletion; 0: none. */
export const clusterAtOf = (head: RecordHead) => timeIn(head, flag_cluster) ?? 0n

/** When the blob was last put, as far as this node knows. Deletions are compared with it. */
export const putAtOf = (head: RecordHead) => timeIn(head, flag_put) ?? sinceOf(head)

export const labelsOf = ({ bytes }: RecordHead): BlobLabels => {
  const length = bytes.readUInt32LE(100)
  if (length === 0) return no_labels
  const start = fixed_bytes + bytes.readUInt32LE(96)
  return JSON.parse(bytes.toString("utf8", start, start + length))
}

export const originOf = ({ bytes }: RecordHead): BlobOrigin => {
  const text = bytes.toString("utf8", fixed_bytes, fixed_bytes + bytes.readUInt32LE(96))
  const request_at = bytes.readUInt16LE(88)
  const correlation_at = request_at + bytes.readUInt16LE(90)
  return {
    actor: text.slice(0, request_at),
    request_id: text.slice(request_at, correlation_at),
    correlation_id: text.slice(correlation_at),
  }
}

const readExtents = (bytes: Buffer, start: number, count: number): ReadonlyArray<Extent> =>
  Array.from({ length: count }, (_, n) => {
    const at = start + extent_bytes * n
    return {
      file: bytes.readUInt32LE(at),
      table_crc: bytes.readUInt32LE(at + 4),
      position: readNumber(bytes, at + 8),
      bytes: readNumber(bytes, at + 16),
    }
  })

export const extentsOf = (head: RecordHead) =>
  readExtents(head.bytes, extentsAt(head), head.bytes.readUInt32LE(104))

export const freedOf = (head: RecordHead) => {
  const extents = head.bytes.readUInt32LE(104)
  const start = extentsAt(head) + extent_bytes * extents
  return readExtents(head.bytes, start, head.bytes.readUInt32LE(108))
}

export const crcsOf = ({ bytes, payload_bytes }: RecordHead): ReadonlyArray<number> =>
  Array.from({ length: tableBytes(payload_bytes) / crc_bytes }, (_, n) =>
    bytes.readUInt32LE(textsEnd(bytes) + crc_bytes * n),
  )

/** Verifies the inline payload, or a part of it that starts with a chunk. */
export const isPayloadIntact = (
  head: RecordHead,
  payload: Uint8Array,
  first_chunk = 0,
): boolean => {
  const { bytes, payload_bytes } = head
  const start = bytes.byteOffset + textsEnd(bytes)
  const table = new DataView(bytes.buffer, start, tableBytes(payload_bytes))
  return firstMismatch(payload, first_chunk, table, first_chunk) === undefined
}
