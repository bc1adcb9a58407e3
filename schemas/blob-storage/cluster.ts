/**
 * The cluster: ClusterService's messages, the commands that change it, and what it refuses.
 *
 * Source: document 1 §2 Responses, §3, §4 ClusterService; DECISIONS, document 1.
 */
import { Schema } from "effect"
import {
  NodeAddress,
  NodeId,
  NodeInfo,
  SignedInt64,
  Uint64,
  Uint64Digits,
} from "#schemas/blob-storage/node.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

/** Nodes of one cluster: with each field at its longest they fit in one snapshot of 16 KiB. */
export const nodes_max = 40

/** Points of a node on the ring: the bound of `cluster.vnodes_per_node`. */
const vnodes_per_node_max = 1024

export const VnodesPerNode = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: vnodes_per_node_max }),
)

/** The number of an election: rising, so that whoever was replaced is known by a lower one. */
const Fence = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const JoinRequest = Schema.Struct({
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64,
})
export type JoinRequest = typeof JoinRequest.Type

export const LeaveRequest = Schema.Struct({
  node_id: NodeId,
  graceful: Schema.optionalKey(Schema.Boolean),
})

export const HeartbeatRequest = Schema.Struct({
  node_id: NodeId,
  used_bytes: Uint64,
  blob_count: Uint64,
  ring_version: SignedInt64,
})

export const SyncRingRequest = Schema.Struct({ ring_version: SignedInt64 })

const NodeInfos = Schema.Array(NodeInfo)

export const JoinResponse = Schema.Struct({
  accepted: Schema.Boolean,
  ring_version: SignedInt64,
  nodes: NodeInfos,
})

export const LeaveResponse = Schema.Struct({ acknowledged: Schema.Boolean })

/** `nodes` is there only when the caller's ring is behind. */
export const HeartbeatResponse = Schema.Struct({
  ok: Schema.Boolean,
  ring_version: SignedInt64,
  nodes: Schema.optionalKey(NodeInfos),
})

export const GetClusterStateResponse = Schema.Struct({
  nodes: NodeInfos,
  ring_version: SignedInt64,
})

export const SyncRingResponse = Schema.Struct({
  ring_version: SignedInt64,
  node_ids: Schema.Array(NodeId),
  vnodes_per_node: Schema.Int,
})

/**
 * How far compaction by hand is on this node (decision 0178): the caller repeats the request
 * until `is_done`. `given_back_bytes` counts from when it began; `remaining_bytes` is dead space in
 * files that are still to be emptied; `problem` says why not all was given back, and what to do.
 */
export const CompactResponse = Schema.Struct({
  node_id: NodeId,
  is_done: Schema.Boolean,
  given_back_bytes: Uint64,
  remaining_bytes: Uint64,
  /** Length of the volume's files, and what stored blobs need of it. */
  disk_bytes: Uint64,
  used_bytes: Uint64,
  problem: Schema.optionalKey(Schema.String),
})
export type CompactResponse = typeof CompactResponse.Type

/**
 * Progress and health of the cluster. Its shape is ours (DECISIONS, document 1). `bytes_moved`,
 * `repairs` and `replication_failures` count from when a node's process began; `ring_share` is the
 * part of all identifiers, 0 to 1, that the ring gives to the node first; `last_heartbeat_at` is
 * Unix nanoseconds, absent when this process has heard none.
 */
export const ClusterMetrics = Schema.Struct({
  ring_version: SignedInt64,
  vnodes_per_node: Schema.Int,
  pending_migrations: Uint64,
  bytes_moved: Uint64,
  repairs: Uint64,
  replication_failures: Uint64,
  under_replicated: Uint64,
  nodes: Schema.Array(
    Schema.Struct({
      ...NodeInfo.fields,
      ring_share: Schema.Number,
      // Copies that have their place on another node.
      pending_migrations: Uint64,
      // What other nodes took from this one.
      bytes_moved: Uint64,
      // Copies that were missing, and that it made or gave.
      repairs: Uint64,
      // Copies of its puts that it could not store elsewhere.
      replication_failures: Uint64,
      // Blobs that ask for more nodes than are active, or that were found to lack copies.
      under_replicated: Uint64,
      last_heartbeat_at: Schema.optionalKey(Uint64),
    }),
  ),
})

/** Admits a node, or tells anew where a member is reached and what it contributes. */
export const JoinNode = message("JoinNode", {
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64Digits,
  vnodes_per_node: VnodesPerNode,
})
/** Graceful: the node's blobs move first. Else it is removed at once, with them. */
export const LeaveNode = message("LeaveNode", {
  node_id: NodeId,
  graceful: Schema.Boolean,
  at: Schema.optionalKey(Instant),
})
/** Nothing is left on a leaving node that has to move. */
export const ConfirmLeave = message("ConfirmLeave", { node_id: NodeId })
/** Nothing was heard of the node for the deadline. Refused from a watchdog that was replaced. */
export const MarkNodeOffline = message("MarkNodeOffline", {
  node_id: NodeId,
  fence: Fence,
  at: Instant,
  remove_after_seconds: Schema.Int.check(Schema.isGreaterThan(0)),
})
/** An offline node was heard again. */
export const ReviveNode = message("ReviveNode", { node_id: NodeId })
/** The node was offline until `remove_at`. Without effect when it was heard meanwhile. */
export const RemoveNode = message("RemoveNode", { node_id: NodeId, remove_at: Instant })

export const ClusterCommand = Schema.Union([
  JoinNode,
  LeaveNode,
  ConfirmLeave,
  MarkNodeOffline,
  ReviveNode,
  RemoveNode,
])
export type ClusterCommand = typeof ClusterCommand.Type

/** No member has this id. */
export class NodeAbsent extends Schema.TaggedError<NodeAbsent>()("NodeAbsent", {
  code: Schema.tag("NOT_FOUND"),
  detail: Schema.String,
}) {}

/** The cluster has `nodes_max` members. */
export class ClusterFull extends Schema.TaggedError<ClusterFull>()("ClusterFull", {
  code: Schema.tag("RESOURCE_EXHAUSTED"),
  detail: Schema.String,
}) {}

/** The node's state does not allow it. */
export class NodeRefuses extends Schema.TaggedError<NodeRefuses>()("NodeRefuses", {
  code: Schema.tag("FAILED_PRECONDITION"),
  detail: Schema.String,
}) {}

/** Whoever sent this was replaced by another. */
export class Superseded extends Schema.TaggedError<Superseded>()("Superseded", {
  code: Schema.tag("ABORTED"),
  detail: Schema.String,
}) {}

export const ClusterRejection = Schema.Union([NodeAbsent, ClusterFull, NodeRefuses, Superseded])
export type ClusterRejection = typeof ClusterRejection.Type
