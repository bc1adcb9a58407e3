/** Blob storage in this process: its store, its background processes, its API. */
import { Context, Deferred, Effect, Layer, Schedule } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { sendHeartbeats } from "#actors/blob-storage/heartbeat.ts"
import { journal, recordedCursor } from "#actors/blob-storage/journal.ts"
import { type MembersCache, makeMembersCache, membership } from "#actors/blob-storage/members.ts"
import { Blobs, fromEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultText } from "#actors/blob-storage/ports/fault.ts"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { shortfall } from "#actors/blob-storage/shortfall.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { Commands } from "#actors/commands.ts"
import { keepRunning } from "#actors/process.ts"
import { clusterMetrics } from "#adapters/blob-storage/cluster-metrics.ts"
import { cursors } from "#adapters/blob-storage/cursor-key.ts"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import { threadFull } from "#adapters/thread-share.ts"
import { BlobApi, BlobListApi } from "#gateway/blob-storage/apis/blobs.ts"
import { BlobStorageApi } from "#gateway/blob-storage/apis/cluster.ts"
import { blobs } from "#gateway/blob-storage/blobs.ts"
import { cluster } from "#gateway/blob-storage/cluster.ts"
import { directBlobs } from "#gateway/blob-storage/direct/routes.ts"
import { appOf } from "#gateway/routes.ts"
import { compareVolume, keepVolumeWitness } from "#journal"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { listNodes } from "#projections/blob-storage/node.ts"
import { NodeAddress, NodeId } from "#schemas/blob-storage/node.ts"
import type { Settings } from "#schemas/settings.ts"
import { joinNodes, nodeDoor } from "#server/blob-storage/cluster.ts"
import { volumeMetrics } from "#volume"

/** A compaction request returns within this time, finished or not. */
const compact_wait_ms = 1000

/** How long startup waits until this node is active in its cluster, and the polling interval. */
const joined_ms_max = 5000
const joined_look_ms = 20

export interface BlobStorageOptions {
  readonly settings: Settings
  readonly node_id: string
  /** `host:port` at which other nodes reach this one; known once the process listens. */
  readonly advertised: Deferred.Deferred<string>
  readonly live_nodes: Context.Context<LiveNodes>
}

/** The background processes of this node. */
const processes = Effect.fnUntraced(function* (
  { settings: { cluster: settings, blob }, node_id }: BlobStorageOptions,
  held: MembersCache,
  { checked }: Parts,
) {
  const cluster = settings.name
  yield* Effect.forkScoped(keepRunning(membership(cluster, held)))
  yield* Effect.forkScoped(journal(node_id, threadFull()))
  yield* keepVolumeWitness(`${Volume.name}.${node_id}`, blob.dir)
  yield* Effect.forkScoped(keepRunning(shortfall({ cluster, node_id, lastFindings: checked })))
})

/** The store and its dependencies. */
const openParts = Effect.fnUntraced(function* (
  { settings, node_id, live_nodes }: BlobStorageOptions,
  held: MembersCache,
) {
  const { blob, cluster } = settings
  yield* compareVolume(blob.dir)
  const volume = yield* openBlobVolume({
    dir: blob.dir,
    capacity_bytes: cluster.capacity_bytes,
    free_floor_bytes: blob.free_floor_bytes,
    size_max_bytes: blob.stream_bytes_max,
    segment_bytes: blob.segment_bytes,
    scrub_bytes_per_second: blob.scrub_bytes_per_second,
    resume_after: yield* recordedCursor(node_id),
  })
  const { find } = Context.get(live_nodes, LiveNodes)
  const lastHeartbeat = (node_id: string) => find(node_id)?.received_at
  const joined = yield* joinNodes({ settings, node_id, held, lastHeartbeat }, volume)
  const around = Context.merge(
    yield* Layer.build(cursors(settings.data.dir, cluster.secret)),
    live_nodes,
  )
  return { ...joined, built: Context.add(around, Blobs, joined.engine), volume }
})

type Parts = Effect.Success<ReturnType<typeof openParts>>

/** The node's current usage, for heartbeats. */
const usageOf = ({ engine, progress }: Parts) =>
  Effect.map(Effect.promise(engine.usage), ({ used_bytes, capacity_bytes, blob_count }) => ({
    used_bytes: BigInt(used_bytes),
    capacity_bytes: BigInt(capacity_bytes),
    blob_count: BigInt(blob_count),
    progress: progress(),
  }))

const joinCluster = Effect.fnUntraced(function* (options: BlobStorageOptions, parts: Parts) {
  const { settings, node_id, advertised } = options
  const { name, vnodes_per_node, heartbeat_interval_seconds } = settings.cluster
  const usage = usageOf(parts)
  const { capacity_bytes } = yield* usage
  const node = {
    node_id: NodeId.make(node_id),
    address: NodeAddress.make(yield* Deferred.await(advertised)),
    capacity_bytes: String(capacity_bytes),
    vnodes_per_node,
  }
  return yield* sendHeartbeats({ cluster: name, node, heartbeat_interval_seconds, usage })
})

/** Manual compaction, and its progress after about a second. */
const compactOf = ({ volume }: Parts) =>
  Effect.map(
    fromEngine(() => volume.reclaim(compact_wait_ms)),
    ({ is_done, problem, given_back_bytes, remaining_bytes, disk_bytes, used_bytes }) => ({
      is_done,
      given_back_bytes: BigInt(given_back_bytes),
      remaining_bytes: BigInt(remaining_bytes),
      disk_bytes: BigInt(disk_bytes),
      used_bytes: BigInt(used_bytes),
      ...(problem !== undefined && { problem }),
    }),
  )

const routesOf = ({ settings, node_id }: BlobStorageOptions, parts: Parts) => {
  const { name, vnodes_per_node } = settings.cluster
  const own = { node_id, usage: usageOf(parts), compact: compactOf(parts) }
  return Layer.mergeAll(
    HttpApiBuilder.layer(BlobListApi).pipe(Layer.provide(blobs)),
    HttpApiBuilder.layer(BlobStorageApi).pipe(
      Layer.provide(cluster({ cluster: name, vnodes_per_node, own })),
    ),
  )
}

/** The number of active nodes that this node knows. */
const countActive = ({ members }: MembersCache) => Math.max(1, members().active.length)

/** The direct routes, which bypass Effect's API. */
const directOf = (
  { engine }: Parts,
  { settings: { blob, json }, node_id }: BlobStorageOptions,
  active_nodes: Effect.Effect<number>,
) =>
  directBlobs({
    engine,
    active_nodes,
    node_id,
    int64: json.int64,
    json_digits_max: blob.json_body_bytes_max,
  })

/** Why the store rejects requests or writes; undefined if it accepts all. */
const problemOf = ({ engine, apart }: Parts) =>
  Effect.match(fromEngine(engine.usage), {
    onFailure: (fault) => `cannot query its store: ${faultText(fault)}`,
    onSuccess: ({ read_only }) => (read_only ? "is read-only after a failed write" : apart()),
  })

/** The service to mount, until the scope closes. */
export const blobStorage = Effect.fnUntraced(function* (options: BlobStorageOptions) {
  const { settings, node_id } = options
  const model = yield* BlobStorageModel
  const nodes = listNodes(model.db, settings.cluster.name)
  const held = makeMembersCache(node_id)
  const active_nodes = Effect.sync(() => countActive(held))
  const isSelf = (node: { readonly node_id: string }) => node.node_id === node_id
  const is_joined = Effect.map(
    nodes,
    (nodes) =>
      nodes.some((node) => isSelf(node) && node.state === "active") &&
      held.members().active.some(isSelf),
  )
  const internal = yield* nodeDoor({ settings, node_id, held }, () => opened?.answers)
  // If startup fails, its own error is shown instead.
  let problem: ReturnType<typeof problemOf> = Effect.succeed("is opening its store")
  let opened: Parts | undefined

  const start = Effect.gen(function* () {
    const parts = yield* openParts(options, held)
    problem = problemOf(parts)
    opened = parts
    yield* Effect.forkScoped(Effect.provideContext(joinCluster(options, parts), parts.built))
    yield* Effect.provideContext(processes(options, held, parts), parts.built)
    const around = yield* Effect.context<BlobStorageModel | Commands>()
    const known = around.pipe(Context.pick(BlobStorageModel, Commands), Context.merge(parts.built))
    return yield* appOf(routesOf(options, parts), known)
  })

  return {
    name: "blob-storage",
    api: BlobStorageApi.addHttpApi(BlobApi),
    routes: start,
    waitFor: model.waitFor,
    ready: Effect.suspend(() => problem),
    /** Prometheus text of the store; empty if it did not open. */
    metrics: Effect.suspend(() => {
      if (opened === undefined) return Effect.succeed("")
      const { volume, progress } = opened
      const active_nodes = held.members().active.length
      const of_cluster = { progress: progress(), active_nodes, links: internal.count() }
      return Effect.map(volumeMetrics(volume), (text) => text + clusterMetrics(of_cluster))
    }),
    direct: Effect.sync(() => (opened ? directOf(opened, options, active_nodes) : [])),
    /** The endpoint for other nodes. */
    internal,
    /** Waits until this node is active in its cluster, or the startup limit has passed. */
    joined: Effect.repeat(is_joined, {
      until: (is_joined) => is_joined,
      schedule: Schedule.spaced(joined_look_ms),
      times: joined_ms_max / joined_look_ms,
    }),
  }
})
