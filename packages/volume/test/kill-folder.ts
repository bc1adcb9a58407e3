/** A volume in a real folder, and the blobs that killed writers put into it. */
import { blake3 } from "@napi-rs/blake-hash"
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { openVolume } from "../engine.ts"

const mib = 1024 * 1024
const capacity_bytes = 1024 ** 4

export const origin: BlobOrigin = { actor: "tester", request_id: "r-1", correlation_id: "c-1" }

export const order: PutOrder = {
  labels: {},
  policy: "REPLICATION_POLICY_REPLICA3",
  origin,
  expected_id: undefined,
  if_none_match: false,
}

/** Opens the volume with small files, so that it has many. */
export const openFolder = (dir: string, segment_bytes = 8 * mib) =>
  openVolume({
    dir,
    capacity_bytes,
    size_max_bytes: capacity_bytes,
    segment_bytes,
    scrub_bytes_per_second: 0,
  })

/** One in two hundred is large. */
export const sizeOf = (seed: number) =>
  seed % 200 === 7 ? 300_000 + (seed % 1000) * 1000 : (seed * 37) % 9000

export const idOf = (seed: number) =>
  // The first half of the hash is a BlobId.
  blake3(noise(seed, sizeOf(seed)))
    .toString("hex")
    .slice(0, 32) as BlobId
