/** Commands and queries for tests of the cluster. */
import {
  NodeActivated,
  NodeChanged,
  NodeJoined,
  NodeLeaveStarted,
  NodeLeft,
  NodeRemoved,
  NodeRevived,
  NodeWentOffline,
  RingConfigured,
} from "#events/blob-storage/cluster.ts"
import { JoinNode, LeaveNode, MarkNodeOffline } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

export const a = NodeId.make("node-a")
export const b = NodeId.make("node-b")
export const where = { address: "10.0.0.1:9797", capacity_bytes: "1000" }
export const at = "2026-11-20T12:00:00.000Z"
export const remove_at = "2026-11-20T13:00:00.000Z"

export const join = (node_id: NodeId, more: Partial<typeof JoinNode.Type> = {}) =>
  JoinNode.make({ node_id, ...where, vnodes_per_node: 128, ...more })
export const mark = (node_id: NodeId, fence: number) =>
  MarkNodeOffline.make({ node_id, fence, at, remove_after_seconds: 3600 })
export const leave = (node_id: NodeId, graceful: boolean) => LeaveNode.make({ node_id, graceful })

export const configured = RingConfigured.make({ vnodes_per_node: 128, capacity_unit_bytes: "1000" })
export const joined = (node_id: NodeId) =>
  NodeJoined.make({ node_id, ...where, weight_percent: 100 })
export const activated = (node_id: NodeId) => NodeActivated.make({ node_id })
export const offline = (node_id: NodeId, fence = 7) =>
  NodeWentOffline.make({ node_id, fence, remove_at })
export const revived = (node_id: NodeId) => NodeRevived.make({ node_id })
export const leaving = (node_id: NodeId) => NodeLeaveStarted.make({ node_id })
export const left = (node_id: NodeId) => NodeLeft.make({ node_id })
export const removed = (node_id: NodeId) => NodeRemoved.make({ node_id, reason: "left_at_once" })
export const changed = (node_id: NodeId, capacity_bytes: string, weight_percent: number) =>
  NodeChanged.make({ node_id, address: where.address, capacity_bytes, weight_percent })

export const member = (node_id: NodeId) => [joined(node_id), activated(node_id)]
export const one = [configured, ...member(a)]

/** Two nodes, through every kind of event. */
export const eachEvent = [
  configured,
  ...[a, b].flatMap((node_id) => [
    joined(node_id),
    activated(node_id),
    changed(node_id, "2000", 200),
    offline(node_id),
    revived(node_id),
    leaving(node_id),
    left(node_id),
    removed(node_id),
  ]),
  { ...configured, vnodes_per_node: 64 },
]
