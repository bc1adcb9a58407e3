/** The endpoints of ClusterService. Source: document 1 §4 ClusterService, §5. */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, BodyLimit, command_bytes_max, KeyNotNeeded } from "#gateway/limits.ts"
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
  .annotate(OpenApi.Description, "The cluster of nodes and its ring.")
  .annotate(BodyLimit, () => command_bytes_max)
  .add(
    HttpApiEndpoint.post("join", "/v1/cluster/join", {
      payload: JoinRequest,
      success: JoinResponse,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Join the cluster")
      .annotate(Needs, admin),
    HttpApiEndpoint.post("leave", "/v1/cluster/leave", {
      payload: LeaveRequest,
      success: LeaveResponse,
      error: rejections(NotFound, FailedPrecondition),
    })
      .annotate(OpenApi.Summary, "Leave the cluster")
      .annotate(Needs, admin),
    HttpApiEndpoint.post("heartbeat", "/v1/cluster/heartbeat", {
      payload: HeartbeatRequest,
      success: HeartbeatResponse,
      error: rejections(NodeUnknown),
    })
      .annotate(KeyNotNeeded, "The next heartbeat replaces this one.")
      .annotate(OpenApi.Summary, "Tell that a node lives")
      .annotate(Needs, admin),
    HttpApiEndpoint.get("state", "/v1/cluster/state", {
      success: GetClusterStateResponse,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read the cluster's state")
      .annotate(Needs, { scopes: ["blobs:read", "cluster:admin"] }),
    HttpApiEndpoint.post("sync_ring", "/v1/cluster/sync-ring", {
      payload: SyncRingRequest,
      success: SyncRingResponse,
      error: rejections(),
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Exchange the ring")
      .annotate(Needs, admin),
    HttpApiEndpoint.get("metrics", "/v1/cluster/metrics", {
      success: ClusterMetrics,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read the cluster's figures")
      .annotate(Needs, admin),
    // Responds within about a second, finished or not: the client repeats it until `is_done`.
    HttpApiEndpoint.post("compact", "/v1/cluster/compact", {
      success: CompactResponse,
      error: rejections(),
    })
      .annotate(KeyNotNeeded, "It joins the present run; what is stored stays as it is.")
      .annotate(OpenApi.Summary, "Give deleted space of this node back to its disk")
      .annotate(Accepts, [])
      .annotate(Needs, admin),
  )

/** Documents add BlobApi (`addHttpApi`), which a node serves by its own handlers. */
export const BlobStorageApi = HttpApi.make("blob-storage").add(cluster)
