/**
 * What happened to the blobs that one node keeps, as its store's journal told it, and whether there
 * are nodes enough for all their copies.
 *
 * Stream: blob-storage.volume.<node id>. A fact's `cursor` is its place in the journal, and `after`
 * the cursor of the fact before it: so the stream itself shows that none is missing.
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
  /** The one part of the blob that is meant; absent: all of it. */
  shard: Schema.optionalKey(FactShard),
  /** Unix nanoseconds, as decimal digits: beyond what a JSON number tells exactly. */
  at: Schema.String.check(Schema.isPattern(/^\d{1,20}$/)),
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
} as const

/** The bytes of the blob, or of the shard, are on the node's disk. */
export const BlobStored = message("BlobStored", {
  ...fact,
  labels: Schema.optionalKey(BlobLabels),
})
/** Somebody deleted the copy of this node. */
export const BlobDeleted = message("BlobDeleted", fact)
/** The copy did not match its checksum and was set aside. */
export const BlobQuarantined = message("BlobQuarantined", fact)
/** The copy's file was gone. */
export const BlobLost = message("BlobLost", fact)
/** The node let its copy go: it is not the node's to keep any more, and safe with those it is. */
export const BlobReleased = message("BlobReleased", fact)

const shortfall = {
  /** How many nodes of the cluster were active, this one included. */
  active_nodes: Schema.Int.check(Schema.isGreaterThan(0)),
  /** Blobs of this node whose policy asks for more nodes than that. */
  under_replicated: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
} as const

/** From here on some of the node's blobs have fewer copies than their policy asks for. */
export const ReplicationShortfallStarted = message("ReplicationShortfallStarted", shortfall)
/** From here on there are nodes enough for each blob of this one. */
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

/** What a fact changes of what the node holds. */
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
