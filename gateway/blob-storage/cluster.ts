/** ClusterService's handlers. Source: document 1 §4 ClusterService; DECISIONS, document 1. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { commandOf } from "#actors/blob-storage/heartbeat.ts"
import { type BlobFault, faultText } from "#actors/blob-storage/ports/fault.ts"
import { type Heartbeat, LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { type NodeProgress, no_progress } from "#actors/blob-storage/ports/repair-progress.ts"
import { activeNodes } from "#actors/blob-storage/shortfall.ts"
import { underReplicated } from "#actors/blob-storage/volume.ts"
import { address, Commands } from "#actors/commands.ts"
import { BlobStorageApi } from "#gateway/blob-storage/apis/cluster.ts"
import { answer, jsonBody } from "#gateway/json.ts"
import { commandFailure, origin } from "#gateway/request-context.ts"
import { ring } from "#placement"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { findCluster, listNodes, type NodeRow } from "#projections/blob-storage/node.ts"
import { listPolicies } from "#projections/blob-storage/volume.ts"
import {
  type ClusterCommand,
  ClusterMetrics,
  CompactResponse,
  GetClusterStateResponse,
  HeartbeatRequest,
  HeartbeatResponse,
  JoinNode,
  JoinRequest,
  JoinResponse,
  LeaveNode,
  LeaveRequest,
  LeaveResponse,
  SyncRingRequest,
  SyncRingResponse,
} from "#schemas/blob-storage/cluster.ts"
import { NodeId, type NodeInfo } from "#schemas/blob-storage/node.ts"
import {
  FailedPrecondition,
  NodeUnknown,
  NotFound,
  ResourceExhausted,
  Unavailable,
} from "#schemas/blob-storage/rejection.ts"

export interface ClusterOptions {
  /** `cluster.name` */
  readonly cluster: string
  readonly vnodes_per_node: number
  /** This node. Its values are read directly, not from its last heartbeat. */
  readonly own: { readonly node_id: string; readonly usage: Usage; readonly compact: Compact }
}

/** Starts compaction or joins a running one; returns its progress within about a second. */
type Compact = Effect.Effect<Omit<CompactResponse, "node_id">, BlobFault>

type Usage = Effect.Effect<Omit<Heartbeat, "node_id">>

const not_member = "node not in the cluster"

const answers = {
  join: answer(JoinResponse),
  leave: answer(LeaveResponse),
  heartbeat: answer(HeartbeatResponse),
  state: answer(GetClusterStateResponse),
  sync_ring: answer(SyncRingResponse),
  metrics: answer(ClusterMetrics),
  compact: answer(CompactResponse),
}

const bodies = {
  join: jsonBody(JoinRequest),
  leave: jsonBody(LeaveRequest),
  heartbeat: jsonBody(HeartbeatRequest),
  sync_ring: jsonBody(SyncRingRequest),
}

const degraded = ({ detail }: { readonly detail: string }) => new Unavailable({ detail })

const at = (position: number) =>
  HttpServerResponse.setHeader("x-almanac-position", String(position))

/** Sends commands to the cluster, and reads its state. */
const clusterOf = Effect.fnUntraced(function* ({ cluster, vnodes_per_node, own }: ClusterOptions) {
  const commands = yield* Commands
  const live = yield* LiveNodes
  const { db, waitFor, catchUp } = yield* BlobStorageModel

  const infoOf = (row: NodeRow, usage: Omit<Heartbeat, "node_id"> | undefined): NodeInfo => ({
    node_id: NodeId.make(row.node_id),
    address: row.address,
    state: row.state,
    // From the node's last heartbeat, because its disk may have filled up since it joined.
    capacity_bytes: usage?.capacity_bytes ?? BigInt(row.capacity_bytes),
    used_bytes: usage?.used_bytes ?? 0n,
    blob_count: usage?.blob_count ?? 0n,
  })

  const current = Effect.gen(function* () {
    const rows = yield* listNodes(db, cluster)
    const found = yield* findCluster(db, cluster)
    const nodes = yield* Effect.forEach(rows, (row) =>
      row.node_id === own.node_id
        ? Effect.map(own.usage, (usage) => infoOf(row, usage))
        : Effect.sync(() => infoOf(row, live.find(row.node_id))),
    )
    const version = found?.ring_version ?? 0
    return {
      rows,
      nodes,
      ring_version: BigInt(version),
      vnodes_per_node: found?.vnodes_per_node ?? vnodes_per_node,
    }
  })

  return {
    live,
    current,
    /** Number of blobs by policy, for each node that stores any. */
    policiesOf: (rows: ReadonlyArray<NodeRow>) =>
      Effect.map(
        listPolicies(
          db,
          rows.map(({ node_id }) => node_id),
        ),
        (counts) => Map.groupBy(counts, ({ node_id }) => node_id),
      ),
    /** Sends a command and waits until the read model shows its effect; returns the position. */
    send: Effect.fnUntraced(function* (command: ClusterCommand) {
      const position = yield* commands
        .send(yield* origin, address(Cluster, cluster, command))
        .pipe(Effect.catchTag("Unavailable", commandFailure(degraded)))
      yield* Effect.mapError(waitFor(position), degraded)
      return position
    }),
    /** Waits until the read model shows everything that is in the log now. */
    caughtUp: Effect.mapError(catchUp, degraded),
    stateOf: (node_id: string) =>
      Effect.map(
        listNodes(db, cluster),
        (rows) => rows.find((row) => row.node_id === node_id)?.state,
      ),
  }
})

type ClusterView = Effect.Success<ReturnType<typeof clusterOf>>

const join = Effect.fnUntraced(function* (
  { send, current }: ClusterView,
  vnodes_per_node: number,
  { node_id, address, capacity_bytes }: typeof JoinRequest.Type,
) {
  const node = { node_id, address, capacity_bytes: String(capacity_bytes) }
  const position = yield* send(JoinNode.make({ ...node, vnodes_per_node })).pipe(
    Effect.catchTag("ClusterFull", ({ detail }) => Effect.fail(new ResourceExhausted({ detail }))),
    // A join is never rejected for other reasons.
    Effect.catchTag(["NodeAbsent", "NodeRefuses", "Superseded"], Effect.die),
  )
  const { ring_version, nodes } = yield* current
  return at(position)(yield* answers.join({ accepted: true, ring_version, nodes }))
})

const leave = Effect.fnUntraced(function* (
  { send }: ClusterView,
  { node_id, graceful = false }: typeof LeaveRequest.Type,
) {
  const { at: requested_at } = yield* origin
  const position = yield* send(LeaveNode.make({ node_id, graceful, at: requested_at })).pipe(
    Effect.catchTags({
      NodeAbsent: ({ detail }) => Effect.fail(new NotFound({ message: not_member, detail })),
      NodeRefuses: ({ detail }) =>
        Effect.fail(new FailedPrecondition({ message: "node cannot leave now", detail })),
      ClusterFull: Effect.die,
      Superseded: Effect.die,
    }),
  )
  return at(position)(yield* answers.leave({ acknowledged: true }))
})

const heartbeat = Effect.fnUntraced(function* (
  { live, send, current, caughtUp, stateOf }: ClusterView,
  { ring_version: known, ...beat }: typeof HeartbeatRequest.Type,
) {
  const { node_id } = beat
  const unknown = new NodeUnknown({ detail: `No node ${node_id} is here: join again.` })
  // The node may have joined through another gateway a moment ago.
  const state = (yield* stateOf(node_id)) ?? (yield* Effect.andThen(caughtUp, stateOf(node_id)))
  if (state === undefined) return yield* unknown
  yield* live.publish(beat)

  const command = commandOf(state, beat)
  if (command !== undefined) {
    // Another heartbeat of the same node, or an operator, may have sent it first.
    yield* send(command).pipe(
      Effect.catchTag("NodeRefuses", () => Effect.void),
      Effect.catchTag("NodeAbsent", () => Effect.fail(unknown)),
      Effect.catchTag(["ClusterFull", "Superseded"], Effect.die),
    )
  }
  const { ring_version, nodes } = yield* current
  return yield* answers.heartbeat({
    ok: true,
    ring_version,
    ...(known < ring_version ? { nodes } : {}),
  })
})

const syncRing = Effect.fnUntraced(function* (
  { current, caughtUp }: ClusterView,
  { ring_version: known }: typeof SyncRingRequest.Type,
) {
  const now = yield* current
  // A higher number from the caller only means that the log may be ahead of the read model.
  const { rows, ring_version, vnodes_per_node } =
    known > now.ring_version ? yield* Effect.andThen(caughtUp, current) : now
  const node_ids = rows
    .filter(({ state }) => state === "active")
    .map(({ node_id }) => NodeId.make(node_id))
  return yield* answers.sync_ring({ ring_version, node_ids, vnodes_per_node })
})

const nanoseconds_per_millisecond = 1_000_000n

const larger = (one: bigint, other: bigint) => (one > other ? one : other)

const metrics = Effect.fnUntraced(function* (
  { live, current, policiesOf }: ClusterView,
  own: ClusterOptions["own"],
) {
  const { progress: own_progress } = yield* own.usage
  const { rows, nodes, ring_version, vnodes_per_node } = yield* current
  const policies = yield* policiesOf(rows)
  const active_nodes = activeNodes(rows)
  const current_ring = ring({
    ring_version: Number(ring_version),
    vnodes_per_node,
    nodes: rows.filter(({ state }) => state === "active"),
  })
  const measured = nodes.map((node) => {
    const heard_at = live.find(node.node_id)?.received_at
    const counts = policies.get(node.node_id)?.map(({ policy, blobs }) => [policy, blobs]) ?? []
    const reported = node.node_id === own.node_id ? own_progress : live.find(node.node_id)?.progress
    const progress = reported ?? no_progress
    const too_few_nodes = BigInt(underReplicated(Object.fromEntries(counts), active_nodes))
    return {
      ...node,
      ring_share: current_ring.share(node.node_id),
      ...progress,
      // A leaving node's blobs must be moved before it has left.
      ...(node.state === "leaving" && {
        pending_migrations: larger(node.blob_count, progress.pending_migrations),
      }),
      under_replicated: larger(too_few_nodes, progress.under_replicated),
      ...(heard_at === undefined
        ? {}
        : { last_heartbeat_at: BigInt(heard_at) * nanoseconds_per_millisecond }),
    }
  })
  const sumOf = (count: keyof NodeProgress) => measured.reduce((sum, node) => sum + node[count], 0n)
  return yield* answers.metrics({
    ring_version,
    vnodes_per_node,
    pending_migrations: sumOf("pending_migrations"),
    bytes_moved: sumOf("bytes_moved"),
    repairs: sumOf("repairs"),
    replication_failures: sumOf("replication_failures"),
    under_replicated: sumOf("under_replicated"),
    nodes: measured,
  })
})

const compact = ({ node_id, compact }: ClusterOptions["own"]) =>
  compact.pipe(
    Effect.mapError((fault) => new Unavailable({ detail: faultText(fault) })),
    Effect.flatMap((found) => answers.compact({ node_id: NodeId.make(node_id), ...found })),
  )

export const cluster = (options: ClusterOptions) =>
  HttpApiBuilder.group(
    BlobStorageApi,
    "cluster",
    Effect.fnUntraced(function* (handlers) {
      const view = yield* clusterOf(options)
      return handlers
        .handleRaw("join", ({ request }) =>
          Effect.flatMap(bodies.join(request), (body) => join(view, options.vnodes_per_node, body)),
        )
        .handleRaw("leave", ({ request }) =>
          Effect.flatMap(bodies.leave(request), (body) => leave(view, body)),
        )
        .handleRaw("heartbeat", ({ request }) =>
          Effect.flatMap(bodies.heartbeat(request), (body) => heartbeat(view, body)),
        )
        .handle("state", () => Effect.flatMap(view.current, answers.state))
        .handleRaw("sync_ring", ({ request }) =>
          Effect.flatMap(bodies.sync_ring(request), (body) => syncRing(view, body)),
        )
        .handle("metrics", () => metrics(view, options.own))
        .handle("compact", () => compact(options.own))
    }),
  )
