/**
 * A volume: the blobs of one node according to the log.
 *
 * Source: DESIGN of the running system, "The exception: bytes".
 */
import { Schema } from "effect"
import { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { FactShard } from "#schemas/blob-storage/shard.ts"
import { message } from "#schemas/message.ts"

/** Maximum number of facts per command, and so of events per commit. Source: DESIGN, "bytes". */
export const facts_max = 500

const Cursor = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * One fact of a node's journal, in a form for the bus: `at` is Unix nanoseconds as decimal digits.
 */
export const VolumeFact = Schema.Struct({
  cursor: Cursor,
  kind: Schema.Literals(["stored", "deleted", "quarantined", "lost", "released"]),
  id: BlobId,
  size: Schema.Int,
  checksum: Schema.String,
  policy: ReplicationPolicy,
  shard: Schema.optionalKey(FactShard),
  labels: Schema.optionalKey(BlobLabels),
  at: Schema.String,
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
})
export type VolumeFact = typeof VolumeFact.Type

/** The facts after cursor `from` up to cursor `to`, in order. */
export const RecordFacts = message("RecordFacts", {
  from: Cursor,
  to: Cursor,
  facts: Schema.Array(VolumeFact).check(Schema.isMaxLength(facts_max)),
})
/**
 * The number of active nodes in the cluster, including this one, and the number of this node's
 * blobs that lack copies, if it has checked.
 */
export const RecordShortfall = message("RecordShortfall", {
  active_nodes: Schema.Int.check(Schema.isGreaterThan(0)),
  under_replicated: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
})
export const VolumeCommand = Schema.Union([RecordFacts, RecordShortfall])
export type VolumeCommand = typeof VolumeCommand.Type

/** The facts do not follow the recorded ones: read the cursor again. */
export class FactsOutOfOrder extends Schema.TaggedError<FactsOutOfOrder>()("FactsOutOfOrder", {
  code: Schema.tag("FAILED_PRECONDITION"),
  detail: Schema.String,
}) {}
