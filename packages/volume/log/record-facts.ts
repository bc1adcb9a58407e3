/** Converts log records to the types of the port: metadata, copies, deletions and facts. Pure. */
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import type { Deletion, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobMeta } from "#schemas/blob-storage/blob.ts"
import { copyBytes } from "../writes/copy-admission.ts"
import {
  checksumOf,
  clusterAtOf,
  crcsOf,
  cut,
  extentsOf,
  hashOf,
  heldBytesOf,
  labelsOf,
  type NewRecord,
  originOf,
  putAtOf,
  type RecordHead,
  shardOf,
  sinceOf,
} from "./record.ts"

/** A blob's metadata, as the port returns it. */
export const metaOf = (head: RecordHead): BlobMeta => {
  const created_at = sinceOf(head)
  return {
    size: BigInt(head.size),
    created_at,
    modified_at: created_at,
    checksum: checksumOf(head),
    labels: labelsOf(head),
    policy: head.policy,
  }
}

/** A copy, as other nodes see it. */
export const heldCopyOf = (head: RecordHead): HeldCopy => {
  const shard = shardOf(head)
  return {
    kind: shard ? "shard" : "whole",
    id: head.id,
    size: head.size,
    checksum: hashOf(head),
    policy: head.policy,
    created_at: sinceOf(head),
    put_at: putAtOf(head),
    stored_at: head.at,
    shard,
  }
}

/** A deletion, as other nodes see it. A cluster-wide deletion takes precedence. */
export const deletionOf = (head: RecordHead): Deletion => {
  const cluster_at = clusterAtOf(head)
  const is_cluster_wide = cluster_at !== 0n
  const since = sinceOf(head)
  const deleted_at = is_cluster_wide ? cluster_at : since
  return {
    kind: "tombstone",
    id: head.id,
    deleted_at,
    is_cluster_wide,
    ...(since > deleted_at && { refuses_until: since }),
  }
}

const fact_kinds = {
  blob: "stored",
  tombstone: "deleted",
  quarantined: "quarantined",
  lost: "lost",
  released: "released",
} as const

/** The record's fact in the journal. Undefined if it has none. */
export const factOf = (head: RecordHead): BlobFact | undefined => {
  if (head.cursor === 0 || head.is_moved) return undefined
  const shard = shardOf(head)
  return {
    cursor: head.cursor,
    kind: fact_kinds[head.kind],
    id: head.id,
    size: head.size,
    checksum: checksumOf(head),
    policy: head.policy,
    ...(shard ? { shard: { ...shard, bytes: heldBytesOf(head) } } : {}),
    ...(head.kind === "blob" ? { labels: labelsOf(head) } : {}),
    at: head.at,
    ...originOf(head),
  }
}

/** Like `factOf`, for a record that was just written. */
export const factOfNew = (record: NewRecord): BlobFact | undefined => {
  const { cursor, is_moved, kind, id, size, hash, policy, shard, labels, at, origin } = record
  if (cursor === 0 || is_moved) return undefined
  return {
    cursor,
    kind: fact_kinds[kind],
    id,
    size,
    policy,
    at,
    checksum: Buffer.from(hash, "hex").toString("base64"),
    ...(shard ? { shard: { ...shard, bytes: copyBytes(size, shard) } } : {}),
    ...(kind === "blob" ? { labels } : {}),
    actor: cut(origin.actor),
    request_id: cut(origin.request_id),
    correlation_id: cut(origin.correlation_id),
  }
}

/** A time as a record stores it: 0 if it equals one that the record has anyway. */
export const zeroIfEqual = (known: bigint, time: bigint) => (time === known ? 0n : time)

/** New times of a copy that is updated to a later put, in Unix nanoseconds. */
export interface Renewed {
  readonly put_at: bigint
  /** When the record is rewritten. */
  readonly at: bigint
}

const timesOf = (head: RecordHead): Renewed => ({ put_at: putAtOf(head), at: head.at })

/** The record to rewrite: moved by compaction, or with new times. */
export const movedOf = (head: RecordHead, { put_at, at }: Renewed = timesOf(head)): NewRecord => ({
  kind: head.kind,
  is_moved: true,
  is_large: head.is_large,
  policy: head.policy,
  id: head.id,
  hash: hashOf(head),
  size: head.size,
  shard: shardOf(head),
  at,
  since: zeroIfEqual(at, sinceOf(head)),
  cluster_at: clusterAtOf(head),
  put_at: zeroIfEqual(sinceOf(head), put_at),
  cursor: head.cursor,
  origin: originOf(head),
  labels: labelsOf(head),
  payload_bytes: head.payload_bytes,
  crcs: crcsOf(head),
  extents: extentsOf(head),
  freed: [],
})
