/** Puts of small blobs whose content is complete: the hottest write path. */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { OnPlaced, PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { type BlobId, blob_id_bytes } from "#schemas/blob-storage/blob.ts"
import { isHeld } from "../blob-index/blob-index.ts"
import { admission, refusalOf } from "../log/decide.ts"
import { metaOf } from "../log/record-facts.ts"
import type { Outcome, PutOperation, VolumeParts } from "../parts.ts"
import { chunk_bytes, chunkCrc } from "../reads/chunks.ts"
import type { Reads } from "../reads/reads.ts"

type Parts = Pick<VolumeParts, "limits" | "index" | "commits"> & Pick<Reads, "verify">

// Shared: creating a hasher costs more than hashing 4 KiB, and its calls never interleave.
const hasher = new Blake3Hasher()

/** Scratch memory for joining the parts of a blob. Nothing keeps a reference to it. */
let gathered = Buffer.alloc(0)

const together = (parts: ReadonlyArray<Uint8Array>) => {
  const size = sizeOf(parts)
  if (size > gathered.length) gathered = Buffer.allocUnsafeSlow(2 * size)
  let at = 0
  for (const part of parts) {
    gathered.set(part, at)
    at += part.length
  }
  return gathered.subarray(0, size)
}

/**
 * BLAKE3-256 in hex. Parts from a socket do not align with BLAKE3's chunks: hashing 64 KiB in parts
 * takes twice as long as in one piece, and joining them a tenth of that.
 */
export const hashHex = (parts: ReadonlyArray<Uint8Array>) => {
  const [only] = parts
  hasher.reset()
  hasher.update(only !== undefined && parts.length === 1 ? only : together(parts))
  return hasher.digest("hex")
}

/** CRC32C of each 64 KiB chunk. */
export const crcsOf = (parts: ReadonlyArray<Uint8Array>, size: number): ReadonlyArray<number> => {
  if (size === 0) return []
  if (size <= chunk_bytes) {
    let crc = 0
    for (const part of parts) crc = chunkCrc(part, crc)
    return [crc]
  }
  const crcs: Array<number> = []
  let filled = 0
  let crc = 0
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const count = Math.min(chunk_bytes - filled, part.length - at)
      crc = chunkCrc(part.subarray(at, at + count), crc)
      at += count
      filled = (filled + count) % chunk_bytes
      if (filled > 0) continue
      crcs.push(crc)
      crc = crcs.length
    }
  }
  if (filled > 0) crcs.push(crc)
  return crcs
}

const operationOf = (
  order: PutOrder,
  parts: ReadonlyArray<Uint8Array>,
  size: number,
  at: bigint,
): PutOperation => {
  const hash = hashHex(parts)
  return {
    kind: "put",
    // The first half of a BLAKE3 digest in hex is a BlobId.
    id: hash.slice(0, 2 * blob_id_bytes) as BlobId,
    hash,
    checksum: Buffer.from(hash, "hex").toString("base64"),
    size,
    bytes: size,
    copy: undefined,
    labels: order.labels,
    policy: order.policy,
    origin: order.origin,
    expected_id: order.expected_id,
    if_none_match: order.if_none_match,
    at,
    parts,
    crcs: crcsOf(parts, size),
    extents: [],
  }
}

/** The response to a put, from the outcome of its operation. */
export const putAnswer = (put: PutOperation, { head, record }: Outcome): PutResult => {
  if (head) return { id: put.id, meta: metaOf(head), created: false }
  if (!record) throw new Error("a put was neither stored nor present")
  const { id, checksum, labels } = put
  const created_at = record.since || record.at
  return {
    id,
    meta: {
      size: BigInt(put.size),
      created_at,
      modified_at: created_at,
      checksum,
      labels,
      policy: record.policy,
    },
    created: true,
    cursor: record.cursor,
  }
}

export const sizeOf = (parts: ReadonlyArray<Uint8Array>) => {
  let size = 0
  for (const part of parts) size += part.length
  return size
}

/** Puts blobs smaller than `limits.inline_bytes_max`. */
export const makePutSmall = ({ limits, index, commits, verify }: Parts) => {
  /** Content that is already stored, and was verified, needs no commit. */
  const settle = async (put: PutOperation): Promise<PutResult | undefined> => {
    const head = await verify(put.id, put.at)
    const refused = refusalOf(put.id, admission(put, head))
    if (refused) throw faultError(refused)
    return head && { id: put.id, meta: metaOf(head), created: false }
  }
  return async (
    order: PutOrder,
    parts: ReadonlyArray<Uint8Array>,
    at: bigint,
    placed?: OnPlaced,
  ): Promise<PutResult> => {
    commits.assertWritable()
    const size = sizeOf(parts)
    if (size > limits.size_max_bytes) {
      throw faultError({ _tag: "BlobTooLarge", bytes_max: limits.size_max_bytes })
    }
    const decided = operationOf(order, parts, size, at)
    const put: PutOperation =
      placed === undefined
        ? decided
        : { ...decided, placed: (outcome) => placed(putAnswer(decided, outcome)) }
    const settled = isHeld(index.find(put.id)) ? await settle(put) : undefined
    return settled ?? putAnswer(put, await commits.submit(put))
  }
}
