/**
 * The rules for a copy that another node sends, given what this node has of the blob: pure, and the
 * same for every engine.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, delete and replicas.
 */

import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, Shard } from "#actors/blob-storage/ports/node-engine.ts"
import { striping } from "#erasure"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/** Number of parity shards. */
const parity_shards = 2
/** More data shards than any code has. A record stores the number in one byte. */
const data_shards_max = 200
const id_digits = 32
const hash_pattern = /^[0-9a-f]{64}$/

/** Bytes of a whole copy, or of each shard of a blob. */
export const copyBytes = (size: number, shard: Pick<Shard, "data_shards"> | undefined) =>
  shard ? striping(size, shard.data_shards).shard_bytes : size

const isShard = ({ index, data_shards }: Shard) =>
  Number.isInteger(data_shards) &&
  data_shards > 0 &&
  data_shards <= data_shards_max &&
  Number.isInteger(index) &&
  index >= 0 &&
  index < data_shards + parity_shards

const failed = (detail: string): BlobFault => ({ _tag: "BlobStoreFailed", detail })

/** The fault of an invalid order, checked before any of its bytes arrive. */
export const orderFault = (
  { id, checksum, size, shard }: CopyOrder,
  bytes: number,
): BlobFault | undefined => {
  if (!hash_pattern.test(checksum)) return failed("The copy's checksum is not a BLAKE3-256 in hex.")
  // The first half of a BLAKE3 digest in hex is a BlobId.
  const actual = checksum.slice(0, id_digits) as BlobId
  if (actual !== id) return { _tag: "BlobIdMismatch", expected: id, actual }
  if (shard && !isShard(shard)) return failed("The copy's shard is invalid.")
  const wanted = copyBytes(size, shard)
  if (bytes === wanted) return undefined
  return failed(`The copy has ${wanted} bytes, but ${bytes} were announced.`)
}

/** When the blob was last put, as far as the order says. */
export const putAtIn = ({ put_at, created_at }: Pick<CopyOrder, "put_at" | "created_at">) =>
  put_at ?? created_at

/** The copy that this node has. */
export interface PresentCopy {
  /** In hex; empty if unknown. */
  readonly checksum: string
  readonly shard: Shard | undefined
}

export interface CopyPresence {
  readonly held: PresentCopy | undefined
  /** When the id was deleted here, if it was not stored since; Unix nanoseconds. */
  readonly deleted_at: bigint | undefined
}

export type CopyAdmission =
  | { readonly verdict: "store" | "keep" }
  | { readonly verdict: "refuse"; readonly fault: BlobFault }

const exists = (id: BlobId, detail: string): CopyAdmission => ({
  verdict: "refuse",
  fault: { _tag: "BlobAlreadyExists", id, detail },
})

/**
 * Whether to store a copy, keep the existing one, or refuse. A deletion at or after the blob's last
 * put refuses it. A whole copy satisfies an order for any shard of the blob.
 */
export const admitCopy = (order: CopyOrder, { held, deleted_at }: CopyPresence): CopyAdmission => {
  const { id, checksum, shard } = order
  if (held === undefined) {
    if (deleted_at === undefined || deleted_at < putAtIn(order)) return { verdict: "store" }
    return { verdict: "refuse", fault: { _tag: "BlobDeletedHere", id, deleted_at } }
  }
  if (held.checksum !== "" && held.checksum !== checksum) {
    return exists(id, "Other bytes with the same 16-byte identifier are stored.")
  }
  if (held.shard === undefined) return { verdict: "keep" }
  const is_same = held.shard.index === shard?.index && held.shard.data_shards === shard.data_shards
  if (is_same) return { verdict: "keep" }
  return exists(id, `Shard ${held.shard.index} of the blob is stored here.`)
}
