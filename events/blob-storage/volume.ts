/**
 * Events of the blobs of one node, as reported by its store's journal, and of the number of nodes
 * for their copies.
 *
 * Stream: blob-storage.volume.<node id>. A fact's `cursor` is its place in the journal, and `after`
 * the cursor of the previous fact: so the stream itself shows that none is missing.
 */
import { Schema } from "effect"
import { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { FactShard } from "#schemas/blob-storage/shard.ts"
import { message } from "#schemas/message.ts"

const Cursor = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const fact = {
  after: Cursor,
  cursor: Cursor,
  id: BlobId,
  /** Bytes of the blob. */
  size: Schema.Int,
  /** BLAKE3-256 in base64. */
  checksum: Schema.String,
  policy: ReplicationPolicy,
  /** The affected part of the blob; absent: all of it. */
  shard: Schema.optionalKey(FactShard),
  /** Unix nanoseconds, as decimal digits: more than a JSON number can represent exactly. */
  at: Schema.String.check(Schema.isPattern(/^\d{1,20}$/u)),
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
} as const

/** The bytes of the blob, or of the shard, are on the node's disk. */
export const BlobStored = message("BlobStored", {
  ...fact,
  labels: Schema.optionalKey(BlobLabels),
})
/** The node's copy was deleted. */
export const BlobDeleted = message("BlobDeleted", fact)
/** The copy did not match its checksum and was set aside. */
export const BlobQuarantined = message("BlobQuarantined", fact)
/** The copy's file was missing. */
export const BlobLost = message("BlobLost", fact)
/** The node released its copy: other nodes own the blob and hold it safely. */
export const BlobReleased = message("BlobReleased", fact)

const shortfall = {
  /** Number of active nodes in the cluster, including this one. */
  active_nodes: Schema.Int.check(Schema.isGreaterThan(0)),
  /** Blobs of this node whose policy requires more nodes than that. */
  under_replicated: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
} as const

/** From here on some of the node's blobs have fewer copies than their policy requires. */
export const ReplicationShortfallStarted = message("ReplicationShortfallStarted", shortfall)
/** From here on the cluster has enough nodes for each blob of this one. */
export const ReplicationShortfallEnded = message("ReplicationShortfallEnded", shortfall)

/** One fact of the journal. */
export const BlobEvent = Schema.Union([
  BlobStored,
  BlobDeleted,
  BlobQuarantined,
  BlobLost,
  BlobReleased,
])
export type BlobEvent = typeof BlobEvent.Type

const digits_below_ms = 6

/** When it happened, to the millisecond: RFC 3339 in UTC. */
export const happenedAt = ({ at }: Pick<BlobEvent, "at">) =>
  new Date(Number(at.slice(0, -digits_below_ms))).toISOString()

/** The effect of a fact on the node's contents. */
export const changeOf = ({ type, size, shard }: BlobEvent) => {
  const blobs: 1 | -1 = type === "BlobStored" ? 1 : -1
  return { blobs, bytes: blobs * (shard?.bytes ?? size) }
}

export const VolumeEvent = Schema.Union([
  ...BlobEvent.members,
  ReplicationShortfallStarted,
  ReplicationShortfallEnded,
]).pipe(Schema.toTaggedUnion("type"))
export type VolumeEvent = typeof VolumeEvent.Type
