/** Blobs and their shards, for the repair's tests. */
import { blake3 } from "@napi-rs/blake-hash"
import type { Shard } from "#actors/blob-storage/ports/node-engine.ts"
import { erasureCode, stripeEncoder, unit_bytes } from "#erasure"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

export interface MadeBlob {
  readonly id: BlobId
  readonly checksum: string
  readonly bytes: Uint8Array
  readonly policy: ReplicationPolicy
}

/** A blob of a few hundred bytes, different for each text. */
export const blobOf = (text: string, policy: ReplicationPolicy): MadeBlob => {
  const bytes = new TextEncoder().encode(`${text} `.repeat(60))
  const checksum = blake3(bytes).toString("hex")
  // The first half of a BLAKE3 digest in hex is a BlobId.
  return { id: checksum.slice(0, 32) as BlobId, checksum, bytes, policy }
}

/** The bytes of a shard, computed by the erasure code. */
export const shardBytes = ({ bytes }: MadeBlob, { index, data_shards }: Shard): Uint8Array => {
  const encoder = stripeEncoder(erasureCode(data_shards, unit_bytes))
  const stripes = [...encoder.push(bytes), encoder.end()]
  const parts = stripes.flatMap((units) => units?.[index] ?? [])
  return new Uint8Array(Buffer.concat(parts))
}
