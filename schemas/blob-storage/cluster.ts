/**
 * The cluster: ClusterService's messages, its commands and its rejections.
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

/**
 * Maximum number of nodes in a cluster: with all fields at their longest they fit in one snapshot
 * of 16 KiB.
 */
export const nodes_max = 40

/** Maximum number of points of a node on the ring; bounds `cluster.vnodes_per_node`. */
const vnodes_per_node_max = 1024

export const VnodesPerNode = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: vnodes_per_node_max }),
)

/** The number of an election. It increases, so a lower one identifies a replaced process. */
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

/** `nodes` is present only if the caller's ring is outdated. */
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
 * Progress of a manual compaction on this node (decision 0178): the caller repeats the request
 * until `is_done`. `given_back_bytes` is counted from its start; `remaining_bytes` is dead space in
 * files that are still to be emptied; `problem` says why some space was not reclaimed, and what to
 * do.
 */
export const CompactResponse = Schema.Struct({
  node_id: NodeId,
  is_done: Schema.Boolean,
  given_back_bytes: Uint64,
  remaining_bytes: Uint64,
  /** Length of the volume's files; `used_bytes` is the part that stored blobs need. */
  disk_bytes: Uint64,
  used_bytes: Uint64,
  problem: Schema.optionalKey(Schema.String),
})
export type CompactResponse = typeof CompactResponse.Type

/**
 * Progress and health of the cluster, in a format of our own (DECISIONS, document 1).
 * `bytes_moved`, `repairs` and `replication_failures` are counted from the start of a node's
 * process. `ring_share` is the share of all identifiers (0 to 1) whose first owner is the node.
 * `last_heartbeat_at` is Unix nanoseconds, absent if this process received no heartbeat.
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
      // Copies that belong on another node.
      pending_migrations: Uint64,
      // Bytes that other nodes accepted from this one.
      bytes_moved: Uint64,
      // Missing copies that it restored.
      repairs: Uint64,
      // Copies of its puts that it could not store on other nodes.
      replication_failures: Uint64,
      // Blobs whose policy needs more nodes than are active, or that lack copies.
      under_replicated: Uint64,
      last_heartbeat_at: Schema.optionalKey(Uint64),
    }),
  ),
})

/** Admits a node, or updates the address and capacity of a member. */
export const JoinNode = message("JoinNode", {
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64Digits,
  vnodes_per_node: VnodesPerNode,
})
/** Graceful: the node moves its blobs first. Otherwise it is removed at once, with its blobs. */
export const LeaveNode = message("LeaveNode", {
  node_id: NodeId,
  graceful: Schema.Boolean,
  at: Schema.optionalKey(Instant),
})
/** The leaving node has nothing left to move. */
export const ConfirmLeave = message("ConfirmLeave", { node_id: NodeId })
/** No heartbeat of the node arrived within the deadline. Rejected from a replaced watchdog. */
export const MarkNodeOffline = message("MarkNodeOffline", {
  node_id: NodeId,
  fence: Fence,
  at: Instant,
  remove_after_seconds: Schema.Int.check(Schema.isGreaterThan(0)),
})
/** Heartbeats of an offline node have resumed. */
export const ReviveNode = message("ReviveNode", { node_id: NodeId })
/** The node was offline until `remove_at`. No effect if it returned meanwhile. */
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

/** The node's state does not allow the command. */
export class NodeRefuses extends Schema.TaggedError<NodeRefuses>()("NodeRefuses", {
  code: Schema.tag("FAILED_PRECONDITION"),
  detail: Schema.String,
}) {}

/** The sender was replaced by another process. */
export class Superseded extends Schema.TaggedError<Superseded>()("Superseded", {
  code: Schema.tag("ABORTED"),
  detail: Schema.String,
}) {}

export const ClusterRejection = Schema.Union([NodeAbsent, ClusterFull, NodeRefuses, Superseded])
export type ClusterRejection = typeof ClusterRejection.Type
