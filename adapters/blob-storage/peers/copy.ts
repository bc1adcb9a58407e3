/**
 * Binary records of copies, 88 bytes each, because lists of them are long and consist mostly of
 * hashes. Version 1 has 80 bytes, without `put_at`, and uses `created_at` for the time of the last
 * put.
 *
 * Little endian: kind u8 (0 nothing, 1 whole, 2 shard, 3 tombstone), policy u8, shard u8, data
 * shards u8, cluster-wide deletion u8, three zeros; identifier 16; checksum 32; size u64;
 * created_at or deleted_at u64; stored_at or refuses_until u64; put_at u64.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */
import type { Copy, HeldCopy, Shard } from "#actors/blob-storage/ports/node-engine.ts"
import { version_with_puts } from "#adapters/blob-storage/peer/version.ts"
import { peerFailure } from "#cluster"
import { type BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

const copy_bytes = 88
const copy_bytes_v1 = 80

/** Length of a record in a protocol version. */
export const copyBytesIn = (version: number) =>
  version < version_with_puts ? copy_bytes_v1 : copy_bytes

/** Maximum number of copies in a request or response: 880,000 bytes. */
export const copies_max = 10_000

export const id_bytes = 16
const checksum_bytes = 32
const [kind_at, policy_at, shard_at, data_shards_at, cluster_wide_at] = [0, 1, 2, 3, 4]
const id_at = 8
const checksum_at = id_at + id_bytes
const size_at = checksum_at + checksum_bytes
const created_at_at = size_at + 8
const stored_at_at = created_at_at + 8
const put_at_at = stored_at_at + 8

/** Document 1 §2: 4 + 2 and 8 + 2. */
const data_shards_known: ReadonlySet<number> = new Set([4, 8])
const parity_shards = 2

/** Positions in this list are part of the format; append new ones only. */
const policies: ReadonlyArray<ReplicationPolicy> = ReplicationPolicy.literals

const unreadable = (what: string) =>
  peerFailure("INTERNAL", `invalid record of a copy from another node: ${what}`)

const writeHeld = (bytes: Buffer, at: number, copy: HeldCopy, version: number) => {
  const has_put_at = version >= version_with_puts
  bytes[at + policy_at] = policies.indexOf(copy.policy)
  bytes.write(copy.checksum, at + checksum_at, "hex")
  bytes.writeBigUInt64LE(BigInt(copy.size), at + size_at)
  bytes.writeBigUInt64LE(has_put_at ? copy.created_at : copy.put_at, at + created_at_at)
  bytes.writeBigUInt64LE(copy.stored_at, at + stored_at_at)
  if (has_put_at) bytes.writeBigUInt64LE(copy.put_at, at + put_at_at)
  if (copy.shard === undefined) return
  bytes[at + shard_at] = copy.shard.index
  bytes[at + data_shards_at] = copy.shard.data_shards
}

const kinds = { whole: 1, shard: 2, tombstone: 3 } as const

/** Encodes consecutive records; undefined means no copy. */
export const encodeCopies = (copies: ReadonlyArray<Copy | undefined>, version: number): Buffer => {
  const record_bytes = copyBytesIn(version)
  const bytes = Buffer.alloc(copies.length * record_bytes)
  let at = 0
  for (const copy of copies) {
    if (copy !== undefined) {
      bytes[at + kind_at] = kinds[copy.kind]
      bytes.write(copy.id, at + id_at, "hex")
      if (copy.kind === "tombstone") {
        bytes[at + cluster_wide_at] = copy.is_cluster_wide ? 1 : 0
        bytes.writeBigUInt64LE(copy.deleted_at, at + created_at_at)
        bytes.writeBigUInt64LE(copy.refuses_until ?? 0n, at + stored_at_at)
      } else writeHeld(bytes, at, copy, version)
    }
    at += record_bytes
  }
  return bytes
}

const readShard = (bytes: Buffer, at: number): Shard => {
  const [index = 0, data_shards = 0] = [bytes[at + shard_at], bytes[at + data_shards_at]]
  if (!data_shards_known.has(data_shards)) throw unreadable(`${data_shards} data shards`)
  if (index >= data_shards + parity_shards) throw unreadable(`shard ${index} of ${data_shards}`)
  return { index, data_shards }
}

/** The brand stands for 32 lower-case hexadecimal digits. */
const idAt = (bytes: Buffer, at: number) => bytes.toString("hex", at, at + id_bytes) as BlobId

const readHeld = (
  bytes: Buffer,
  at: number,
  kind: "whole" | "shard",
  version: number,
): HeldCopy => {
  const policy = policies[bytes[at + policy_at] ?? policies.length]
  if (policy === undefined) throw unreadable(`policy ${bytes[at + policy_at]}`)
  const size = Number(bytes.readBigUInt64LE(at + size_at))
  if (!Number.isSafeInteger(size)) throw unreadable(`a size of ${size}`)
  return {
    kind,
    id: idAt(bytes, at + id_at),
    size,
    policy,
    checksum: bytes.toString("hex", at + checksum_at, at + size_at),
    created_at: bytes.readBigUInt64LE(at + created_at_at),
    put_at: bytes.readBigUInt64LE(at + (version < version_with_puts ? created_at_at : put_at_at)),
    stored_at: bytes.readBigUInt64LE(at + stored_at_at),
    shard: kind === "shard" ? readShard(bytes, at) : undefined,
  }
}

const readCopy = (bytes: Buffer, at: number, version: number): Copy | undefined => {
  const kind = bytes[at + kind_at]
  if (kind === 0) return undefined
  if (kind === kinds.whole) return readHeld(bytes, at, "whole", version)
  if (kind === kinds.shard) return readHeld(bytes, at, "shard", version)
  if (kind !== kinds.tombstone) throw unreadable(`kind ${kind}`)
  const refuses_until = bytes.readBigUInt64LE(at + stored_at_at)
  return {
    kind: "tombstone",
    id: idAt(bytes, at + id_at),
    ...(refuses_until !== 0n && { refuses_until }),
    deleted_at: bytes.readBigUInt64LE(at + created_at_at),
    is_cluster_wide: bytes[at + cluster_wide_at] === 1,
  }
}

/** Decodes consecutive records. Throws a PeerFailure, INTERNAL, if they are invalid. */
export const decodeCopies = (
  encoded: Uint8Array,
  version: number,
): ReadonlyArray<Copy | undefined> => {
  const record_bytes = copyBytesIn(version)
  if (encoded.length % record_bytes !== 0) throw unreadable(`${encoded.length} bytes`)
  if (encoded.length > copies_max * record_bytes) throw unreadable(`${encoded.length} bytes`)
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length)
  return Array.from({ length: bytes.length / record_bytes }, (_, n) =>
    readCopy(bytes, n * record_bytes, version),
  )
}

/** Requires a record of a held copy. */
export const heldCopy = (copy: Copy | undefined): HeldCopy => {
  if (copy !== undefined && copy.kind !== "tombstone") return copy
  throw unreadable("not a copy")
}

/** Decodes exactly one record of a held copy. */
export const decodeHeld = (encoded: Uint8Array, version: number): HeldCopy => {
  const [copy, ...more] = decodeCopies(encoded, version)
  return heldCopy(more.length === 0 ? copy : undefined)
}

export const encodeIds = (ids: ReadonlyArray<BlobId>) => Buffer.from(ids.join(""), "hex")

/** Decodes identifiers. Throws a PeerFailure, INTERNAL, if they are invalid or too many. */
export const decodeIds = (encoded: Uint8Array): ReadonlyArray<BlobId> => {
  if (encoded.length % id_bytes !== 0 || encoded.length > copies_max * id_bytes) {
    throw unreadable(`${encoded.length} bytes of identifiers`)
  }
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length)
  return Array.from({ length: bytes.length / id_bytes }, (_, n) => idAt(bytes, n * id_bytes))
}
