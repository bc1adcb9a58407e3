/** The endpoints of ClusterService. Source: document 1 §4 ClusterService, §5. */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import examples from "#gateway/blob-storage/apis/examples.json" with { type: "json" }
import { Accepts, BodyLimit, command_bytes_max, KeyNotNeeded } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
import {
  ClusterMetrics,
  CompactResponse,
  GetClusterStateResponse,
  HeartbeatRequest,
  HeartbeatResponse,
  JoinRequest,
  JoinResponse,
  LeaveRequest,
  LeaveResponse,
  SyncRingRequest,
  SyncRingResponse,
} from "#schemas/blob-storage/cluster.ts"
import {
  FailedPrecondition,
  NodeUnknown,
  NotFound,
  rejections,
} from "#schemas/blob-storage/rejection.ts"

const admin = { scopes: ["cluster:admin"] }

const cluster = HttpApiGroup.make("cluster")
  .annotate(
    OpenApi.Description,
    "The nodes of a blob storage cluster and their hash ring. Nodes call these operations; " +
      "operators rarely need more than the state and the metrics.",
  )
  .annotate(BodyLimit, () => command_bytes_max)
  .add(
    HttpApiEndpoint.post("join", "/v1/cluster/join", {
      payload: JoinRequest,
      success: JoinResponse,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Add a node to the cluster")
      .annotate(
        OpenApi.Description,
        "Admits a node, which is active at once. A member that joins again is accepted, and its " +
          "address and capacity are updated. The ring version increases if the ring changes. A " +
          "cluster has at most 40 nodes. Nodes call this when they start.",
      )
      .annotate(Needs, admin),
    HttpApiEndpoint.post("leave", "/v1/cluster/leave", {
      payload: LeaveRequest,
      success: LeaveResponse,
      error: rejections(
        NotFound.annotate({ description: "The node is not in the cluster." }),
        FailedPrecondition.annotate({
          description: "The state of the node does not allow it to leave now.",
        }),
      ),
    })
      .annotate(OpenApi.Summary, "Remove a node from the cluster")
      .annotate(
        OpenApi.Description,
        "With `graceful: true` the node gets no new blobs, moves its own to the other nodes and " +
          "then leaves; `GET /v1/cluster/metrics` shows the progress. Otherwise it is removed at " +
          "once, and missing copies are restored from other nodes.",
      )
      .annotate(Needs, admin),
    HttpApiEndpoint.post("heartbeat", "/v1/cluster/heartbeat", {
      payload: HeartbeatRequest,
      success: HeartbeatResponse,
      error: rejections(NodeUnknown),
    })
      .annotate(KeyNotNeeded, "The next heartbeat replaces this one.")
      .annotate(OpenApi.Summary, "Send a heartbeat")
      .annotate(
        OpenApi.Description,
        "Nodes send one every `cluster.heartbeat_interval_seconds` (5). A node without a " +
          "heartbeat for `cluster.heartbeat_deadline_seconds` (15) is offline, and active again " +
          "with the next one; after `cluster.remove_after_seconds` (3600) it is removed. If the " +
          "caller's ring is outdated, the response has all nodes.",
      )
      .annotate(Needs, admin),
    HttpApiEndpoint.get("state", "/v1/cluster/state", {
      success: GetClusterStateResponse,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Get the state of the cluster")
      .annotate(
        OpenApi.Description,
        "Returns all nodes and the ring version, as this node knows them from the log.",
      )
      .annotate(Needs, { scopes: ["blobs:read", "cluster:admin"] }),
    HttpApiEndpoint.post("sync_ring", "/v1/cluster/sync-ring", {
      payload: SyncRingRequest,
      success: SyncRingResponse,
      error: rejections(),
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Get the ring")
      .annotate(
        OpenApi.Description,
        "Returns this node's ring. If the caller's version is newer, this node first reads the " +
          "newest ring from the log or from its peers.",
      )
      .annotate(Needs, admin),
    HttpApiEndpoint.get("metrics", "/v1/cluster/metrics", {
      success: ClusterMetrics,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Get the metrics of the cluster")
      .annotate(
        OpenApi.Description,
        "Returns usage, repairs and the progress of migrations, for the cluster and for each node.",
      )
      .annotate(Needs, admin),
    // Responds within about a second, finished or not: the client repeats it until `is_done`.
    HttpApiEndpoint.post("compact", "/v1/cluster/compact", {
      success: CompactResponse,
      error: rejections(),
    })
      .annotate(KeyNotNeeded, "It joins a compaction that is running and changes no blob.")
      .annotate(OpenApi.Summary, "Compact the volume of this node")
      .annotate(
        OpenApi.Description,
        "Rewrites the volume's files without deleted blobs, to free their space on the disk. The " +
          "response is sent within about a second, whether or not the compaction has ended: " +
          "repeat the request until `is_done` is true. A node also compacts on its own; use this " +
          "if the disk is nearly full.",
      )
      .annotate(Accepts, [])
      .annotate(Needs, admin),
  )

/** Documents add BlobApi (`addHttpApi`), which a node serves with other handlers. */
export const BlobStorageApi = HttpApi.make("blob-storage").add(cluster).annotate(Examples, examples)
