/**
 * The cluster: ClusterService's messages, its commands and its rejections.
 *
 * Source: document 1 §2 Responses, §3, §4 ClusterService; DECISIONS, document 1.
 */
import { Schema } from "effect"
import { SignedInt64, Uint64 } from "#schemas/blob-storage/blob.ts"
import { NodeAddress, NodeId, NodeInfo, Uint64Digits } from "#schemas/blob-storage/node.ts"
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

const RingVersion = SignedInt64.annotateKey({
  description: "The version of the ring, which increases with each change of the ring.",
})

export const JoinRequest = Schema.Struct({
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64.annotateKey({ description: "Bytes that the node contributes." }),
}).annotate({ identifier: "JoinRequest" })
export type JoinRequest = typeof JoinRequest.Type

export const LeaveRequest = Schema.Struct({
  node_id: NodeId,
  graceful: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "True: the node moves its blobs to other nodes and then leaves. False, the default: it is " +
      "removed at once.",
  }),
}).annotate({ identifier: "LeaveRequest" })

export const HeartbeatRequest = Schema.Struct({
  node_id: NodeId,
  used_bytes: Uint64.annotateKey({ description: "Bytes that the node has in use." }),
  blob_count: Uint64.annotateKey({ description: "Number of blobs that the node stores." }),
  ring_version: SignedInt64.annotateKey({ description: "The ring version that the node has." }),
}).annotate({ identifier: "HeartbeatRequest" })

export const SyncRingRequest = Schema.Struct({
  ring_version: SignedInt64.annotateKey({
    description:
      "The ring version that the caller has. If it is newer, this node reads the ring from the " +
      "log or from its peers; it never adopts the number itself.",
  }),
}).annotate({ identifier: "SyncRingRequest" })

const NodeInfos = Schema.Array(NodeInfo).annotate({ description: "All nodes of the cluster." })

export const JoinResponse = Schema.Struct({
  accepted: Schema.Boolean.annotate({ description: "Always true." }),
  ring_version: RingVersion,
  nodes: NodeInfos,
}).annotate({ identifier: "JoinResponse" })

export const LeaveResponse = Schema.Struct({
  acknowledged: Schema.Boolean.annotate({ description: "Always true." }),
}).annotate({ identifier: "LeaveResponse" })

/** `nodes` is present only if the caller's ring is outdated. */
export const HeartbeatResponse = Schema.Struct({
  ok: Schema.Boolean.annotate({ description: "True: the node is a member." }),
  ring_version: RingVersion,
  nodes: Schema.optionalKey(NodeInfos).annotateKey({
    description: "All nodes of the cluster. Present only if the caller's ring is outdated.",
  }),
}).annotate({ identifier: "HeartbeatResponse" })

export const GetClusterStateResponse = Schema.Struct({
  nodes: NodeInfos,
  ring_version: RingVersion,
}).annotate({ identifier: "GetClusterStateResponse" })

const vnodes = { description: "Points of a node on the ring, for a weight of 100 percent." }

export const SyncRingResponse = Schema.Struct({
  ring_version: RingVersion,
  node_ids: Schema.Array(NodeId).annotate({ description: "The nodes on the ring." }),
  vnodes_per_node: Schema.Int.annotate(vnodes),
}).annotate({ identifier: "SyncRingResponse" })

/** Progress of a manual compaction on this node. Source: decision 0178. */
export const CompactResponse = Schema.Struct({
  node_id: NodeId,
  is_done: Schema.Boolean.annotate({
    description: "Whether the compaction has ended. Repeat the request until it is true.",
  }),
  given_back_bytes: Uint64.annotateKey({
    description: "Bytes freed on the disk since the compaction started.",
  }),
  remaining_bytes: Uint64.annotateKey({
    description: "Bytes of deleted blobs in files that are still to be rewritten.",
  }),
  disk_bytes: Uint64.annotateKey({ description: "Total length of the volume's files." }),
  used_bytes: Uint64.annotateKey({ description: "The part of them that stored blobs need." }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why some space was not freed, and what to do. Absent if there is no problem.",
  }),
}).annotate({ identifier: "CompactResponse" })
export type CompactResponse = typeof CompactResponse.Type

/** Counters of repairs and moves, of a node or of the cluster. */
const progress = {
  pending_migrations: Uint64.annotateKey({
    description: "Copies that belong on another node and are still to be moved.",
  }),
  bytes_moved: Uint64.annotateKey({
    description: "Bytes that other nodes accepted from the node since its process started.",
  }),
  repairs: Uint64.annotateKey({
    description: "Missing copies that the node restored since its process started.",
  }),
  replication_failures: Uint64.annotateKey({
    description:
      "Copies of its puts that the node could not store on other nodes since its process started.",
  }),
  under_replicated: Uint64.annotateKey({
    description: "Blobs that lack copies, or whose policy needs more nodes than are active.",
  }),
} as const

/** Progress and health of the cluster, in our own format (DECISIONS, document 1). */
export const ClusterMetrics = Schema.Struct({
  ring_version: RingVersion,
  vnodes_per_node: Schema.Int.annotate(vnodes),
  ...progress,
  nodes: Schema.Array(
    Schema.Struct({
      ...NodeInfo.fields,
      ring_share: Schema.Number.annotate({
        description: "Share of all identifiers, 0 to 1, whose first owner is the node.",
      }),
      ...progress,
      last_heartbeat_at: Schema.optionalKey(Uint64).annotateKey({
        description:
          "When this process received the node's last heartbeat, in nanoseconds since " +
          "1970-01-01 UTC. Absent if it has received none.",
      }),
    }),
  ).annotate({ description: "Each node with its own counters; those above are their sums." }),
}).annotate({ identifier: "ClusterMetrics" })

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
