/**
 * What can happen to a blob storage cluster and its nodes.
 *
 * Stream: blob-storage.cluster.<name>. `ring_version` is in no event: it rises with each one that
 * changes the ring, which is the eligible nodes, their weights and the points of each.
 */
import { Schema } from "effect"
import { VnodesPerNode } from "#schemas/blob-storage/cluster.ts"
import { NodeAddress, NodeId, Uint64Digits } from "#schemas/blob-storage/node.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"

/** Points of a node on the ring, as percent of `vnodes_per_node`. */
const weight_percent = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1600 }))

/**
 * How the ring is drawn. `capacity_unit_bytes` is the capacity that has the full points: the first
 * node's, for ever, so that a later node's capacity never moves the others' points.
 */
export const RingConfigured = message("RingConfigured", {
  vnodes_per_node: VnodesPerNode,
  capacity_unit_bytes: Uint64Digits,
})
export const NodeJoined = message("NodeJoined", {
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64Digits,
  weight_percent,
})
/** From here the node is on the ring. */
export const NodeActivated = message("NodeActivated", { node_id: NodeId })
/** The node is reached elsewhere, or contributes another capacity. */
export const NodeChanged = message("NodeChanged", {
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64Digits,
  weight_percent,
})
/** Nothing was heard of it: it gets no new blobs, and is removed at `remove_at`. */
export const NodeWentOffline = message("NodeWentOffline", {
  node_id: NodeId,
  fence: Schema.Int,
  remove_at: Instant,
})
/** It was heard again before it was removed. */
export const NodeRevived = message("NodeRevived", { node_id: NodeId })
/** From here it gets no new blobs, and those it has move away. */
export const NodeLeaveStarted = message("NodeLeaveStarted", { node_id: NodeId })
/** All its blobs are elsewhere. */
export const NodeLeft = message("NodeLeft", { node_id: NodeId })
/** It is no member any more, and its blobs stay with it; `at` is when, where it is known. */
export const NodeRemoved = message("NodeRemoved", {
  node_id: NodeId,
  reason: Schema.Literals(["left_at_once", "offline_too_long"]),
  at: Schema.optionalKey(Instant),
})

/** What can happen to one node. */
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
