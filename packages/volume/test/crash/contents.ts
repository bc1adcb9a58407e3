/** The blobs of the crash tests, with everything needed to verify them. */
import { blake3 } from "@napi-rs/blake-hash"
import type { Shard } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { copyBytes } from "../../writes/copy-admission.ts"

export interface Content {
  readonly id: BlobId
  /** BLAKE3-256 in base64, and in hex. */
  readonly checksum: string
  readonly hash: string
  /** Size of the blob in bytes. */
  readonly size: number
  /** The shard that this volume stores; undefined: the whole blob. */
  readonly shard: Shard | undefined
  /** The stored bytes. */
  readonly bytes: Uint8Array
  readonly labels: BlobLabels
  readonly policy: ReplicationPolicy
}

/** Segment size of the volumes in crash tests; blobs from an eighth of it on are large. */
export const segment_bytes = 128 * 1024

const kib = 1024
/** Around the boundaries of a sector, a page, a chunk, and a large blob. */
const border_sizes = [0, 1, 511, 4096, 16 * kib - 1, 16 * kib, 64 * kib + 1]
const large_sizes = [20_000, 40_000, 70_000, 100_000, 200_000]
const small_count = 28

const sizes = [
  ...Array.from({ length: small_count }, (_, n) => 40 + ((n * 379) % 6000)),
  9000,
  12_000,
  15_000,
  ...border_sizes,
  ...large_sizes,
]

const policyOf = (n: number, shard: Shard | undefined) => {
  if (shard) return "REPLICATION_POLICY_EC42"
  return n % 4 === 0 ? "REPLICATION_POLICY_NONE" : "REPLICATION_POLICY_REPLICA3"
}

const contentOf = (size: number, n: number): Content => {
  const blob = noise(1000 + n, size)
  const hash = blake3(blob)
  const shard = n % 6 === 5 ? { index: n % 5, data_shards: 4 } : undefined
  return {
    // The first half of the hash is a BlobId.
    id: hash.toString("hex").slice(0, 32) as BlobId,
    checksum: hash.toString("base64"),
    hash: hash.toString("hex"),
    size,
    shard,
    bytes: shard ? noise(3000 + n, copyBytes(size, shard)) : blob,
    labels: n % 3 === 0 ? { name: `content ${n}`, ünï: "cødé" } : {},
    policy: policyOf(n, shard),
  }
}

const [first, ...others] = sizes.map(contentOf)
if (first === undefined) throw new Error("there is no content")

export const contents: readonly [Content, ...ReadonlyArray<Content>] = [first, ...others]

const by_id = new Map(contents.map((content) => [content.id, content]))

export const contentById = (id: BlobId): Content => {
  const content = by_id.get(id)
  if (content === undefined) throw new Error(`The volume reports ${id}, which was never put.`)
  return content
}
