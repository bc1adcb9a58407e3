/** Blob storage in this process: its store, its processes, its paths. */
import { join } from "node:path"
import { Context, Deferred, Effect, Layer, Schedule } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { BlobStore } from "#actors/blob-storage/blob-store.ts"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { heart } from "#actors/blob-storage/heart.ts"
import { journal } from "#actors/blob-storage/journal.ts"
import { ActiveNodes } from "#actors/blob-storage/replication.ts"
import { activeNodes, shortfall } from "#actors/blob-storage/shortfall.ts"
import { watchdog } from "#actors/blob-storage/watchdog.ts"
import { runProcess } from "#actors/process.ts"
import { timer } from "#actors/timer.ts"
import { blobFiles } from "#adapters/blob-files.ts"
import { cursors } from "#adapters/cursor-key.ts"
import { natsLiveNodes } from "#adapters/nats-live-nodes.ts"
import { capacityBytes } from "#adapters/node.ts"
import { sqliteLiveNodes } from "#adapters/sqlite-live-nodes.ts"
import { BlobStorageApi } from "#gateway/blob-storage/api.ts"
import { blobs } from "#gateway/blob-storage/blob.ts"
import { BlobApi } from "#gateway/blob-storage/blob-api.ts"
import { JsonDigitsMax } from "#gateway/blob-storage/blob-get.ts"
import { cluster } from "#gateway/blob-storage/cluster.ts"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { listNodes } from "#projections/blob-storage/node.ts"
import { findVolume } from "#projections/blob-storage/volume.ts"
import { NodeAddress, NodeId } from "#schemas/blob-storage/node.ts"
import type { Settings } from "#schemas/settings.ts"
import { leased } from "#verbs/leased.ts"

/** How long a start waits for this node to be active in its cluster, and how often it looks. */
const joined_ms_max = 5000
const joined_look_ms = 20

export interface BlobStorageOptions {
  readonly settings: Settings
  readonly node_id: string
  /** `host:port` at which other nodes reach this one; known once the process listens. */
  readonly advertised: Deferred.Deferred<string>
}

/** The members of a cluster are those in its log, and a bus of our own holds another log. */
const warnOfJoin = ({ cluster, nats }: Settings) =>
  cluster.join.length > 0 && nats.url === ""
    ? Effect.logWarning(
        "cluster.join has no effect without nats.url: this node is alone in a log of its own.",
      )
    : Effect.void

/** What runs by itself: on this node, and on one node of all. */
const processes = Effect.fnUntraced(function* (settings: Settings["cluster"], node_id: string) {
  const cluster = settings.name
  yield* Effect.forkScoped(journal(node_id))
  yield* Effect.forkScoped(runProcess(shortfall({ cluster, node_id })))
  yield* leased("blob-storage-timer", node_id, () => runProcess(timer("blob-storage", [Cluster])))
  yield* leased("blob-storage-watchdog", node_id, (fence) =>
    watchdog({ ...settings, cluster, fence }),
  )
})

/** To be mounted; it lives as long as the scope. */
export const blobStorage = Effect.fnUntraced(function* (options: BlobStorageOptions) {
  const { settings, node_id, advertised } = options
  const { name } = settings.cluster
  const model = yield* BlobStorageModel

  const volume = yield* findVolume(model.db, node_id)
  const capacity_bytes = yield* capacityBytes(
    settings.cluster.capacity_bytes,
    settings.blob.dir,
    volume?.bytes ?? 0,
  )
  const store = blobFiles({
    dir: settings.blob.dir,
    capacity_bytes,
    size_max_bytes: settings.blob.stream_bytes_max,
  })
  const live = Layer.unwrap(
    Effect.map(sqliteLiveNodes(join(settings.data.dir, "read-models", "live.sqlite")), (keeper) =>
      natsLiveNodes(name, keeper),
    ),
  )
  const parts = Layer.mergeAll(store, cursors(settings.data.dir), live)
  // Until the store is open there is nothing to say; a start that fails says it itself.
  let usable: Effect.Effect<string | undefined> = Effect.succeed("is opening its store")

  const nodes = listNodes(model.db, name)
  const active_nodes = Effect.map(nodes, activeNodes)
  const is_joined = Effect.map(nodes, (nodes) =>
    nodes.some((node) => node.node_id === node_id && node.state === "active"),
  )

  const start = Effect.gen(function* () {
    yield* warnOfJoin(settings)
    const built = yield* Layer.build(parts)
    const { usage } = Context.get(built, BlobStore)
    usable = Effect.match(usage, {
      onFailure: ({ detail }) => `cannot ask its store: ${detail}`,
      onSuccess: ({ read_only }) => (read_only ? "is read-only after a failed write" : undefined),
    })
    const own = Effect.map(Effect.orDie(usage), ({ used_bytes, blob_count }) => ({
      used_bytes: BigInt(used_bytes),
      blob_count: BigInt(blob_count),
    }))
    const beating = Effect.gen(function* () {
      const node = {
        node_id: NodeId.make(node_id),
        address: NodeAddress.make(yield* Deferred.await(advertised)),
        capacity_bytes: String(capacity_bytes),
        vnodes_per_node: settings.cluster.vnodes_per_node,
      }
      const { heartbeat_interval_seconds } = settings.cluster
      return yield* heart({ cluster: name, node, heartbeat_interval_seconds, usage: own })
    })
    yield* Effect.forkScoped(Effect.provideContext(beating, built))
    yield* Effect.provideContext(processes(settings.cluster, node_id), built)
    const view = { cluster: name, vnodes_per_node: settings.cluster.vnodes_per_node }
    const routes = Layer.mergeAll(
      HttpApiBuilder.layer(BlobApi).pipe(Layer.provide(blobs)),
      HttpApiBuilder.layer(BlobStorageApi).pipe(
        Layer.provide(cluster({ ...view, own: { node_id, usage: own } })),
      ),
    ).pipe(Layer.provide(Layer.succeedContext(built)))
    const app = yield* HttpRouter.toHttpEffect(routes)
    const known = Context.make(ActiveNodes, active_nodes).pipe(
      Context.add(JsonDigitsMax, settings.blob.json_body_bytes_max),
    )
    return Effect.provideContext(app, known)
  })

  return {
    name: "blob-storage",
    api: BlobStorageApi.addHttpApi(BlobApi),
    routes: start,
    waitFor: model.waitFor,
    ready: Effect.suspend(() => usable),
    /** Waits until this node is active in its cluster, or for as long as a start may take. */
    joined: Effect.repeat(is_joined, {
      until: (is_joined) => is_joined,
      schedule: Schedule.spaced(joined_look_ms),
      times: joined_ms_max / joined_look_ms,
    }),
  }
})
