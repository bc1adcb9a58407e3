/**
 * Events of a blob storage cluster and its nodes.
 *
 * Stream: blob-storage.cluster.<name>. `ring_version` is in no event: it increases with each one
 * that changes the ring, which consists of the eligible nodes, their weights and the points of
 * each.
 */
import { Schema } from "effect"
import { VnodesPerNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId, node_fields, Uint64Digits } from "#schemas/blob-storage/node.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

/**
 * Parameters of the ring. `capacity_unit_bytes` is the capacity with the full number of points:
 * permanently the first node's, so that a later node's capacity never moves the others' points.
 */
export const RingConfigured = message("RingConfigured", {
  vnodes_per_node: VnodesPerNode,
  capacity_unit_bytes: Uint64Digits,
})
export const NodeJoined = message("NodeJoined", node_fields)
/** From here on the node is on the ring. */
export const NodeActivated = message("NodeActivated", { node_id: NodeId })
/** The node has another address, or contributes another capacity. */
export const NodeChanged = message("NodeChanged", node_fields)
/** Its heartbeats stopped: it gets no new blobs, and is removed at `remove_at`. */
export const NodeWentOffline = message("NodeWentOffline", {
  node_id: NodeId,
  fence: Schema.Int,
  remove_at: Instant,
})
/** Its heartbeats resumed before it was removed. */
export const NodeRevived = message("NodeRevived", { node_id: NodeId })
/** From here on it gets no new blobs, and its blobs move to other nodes. */
export const NodeLeaveStarted = message("NodeLeaveStarted", { node_id: NodeId })
/** All its blobs are on other nodes. */
export const NodeLeft = message("NodeLeft", { node_id: NodeId })
/** It is no longer a member, and its blobs stay on it. `at` is absent if the time is unknown. */
export const NodeRemoved = message("NodeRemoved", {
  node_id: NodeId,
  reason: Schema.Literals(["left_at_once", "offline_too_long"]),
  at: Schema.optionalKey(Instant),
})

/** Events of one node. */
export const NodeEvent = Schema.Union([
  NodeJoined,
  NodeActivated,
  NodeChanged,
  NodeWentOffline,
  NodeRevived,
  NodeLeaveStarted,
  NodeLeft,
  NodeRemoved,
])
export type NodeEvent = typeof NodeEvent.Type

export const ClusterEvent = Schema.Union([RingConfigured, ...NodeEvent.members]).pipe(
  Schema.toTaggedUnion("type"),
)
export type ClusterEvent = typeof ClusterEvent.Type
