/** `almanac serve`: every enabled service in one process. What `npm start` runs. */
import { join } from "node:path"
import { NodeHttpServer } from "@effect/platform-node"
import {
  Clock,
  Console,
  Context,
  DateTime,
  Deferred,
  Effect,
  Layer,
  Redacted,
  Schema,
} from "effect"
import { Command } from "effect/cli"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { serveCommands } from "#adapters/commands-nats.ts"
import {
  developmentCredentials,
  developmentCredentialsPath,
} from "#adapters/development-credentials.ts"
import { httpServer } from "#adapters/http-server.ts"
import { httpTransport } from "#adapters/http-transport.ts"
import { identity } from "#adapters/identity.ts"
import { publishInstance } from "#adapters/instance-file.ts"
import { leasesJetStream } from "#adapters/leases-jetstream.ts"
import { logging } from "#adapters/logging.ts"
import { NatsConnection } from "#adapters/nats-connection.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import { nodeId } from "#adapters/node.ts"
import { processMetrics } from "#adapters/process-metrics.ts"
import { publishedEventsJetStream } from "#adapters/published-events-jetstream.ts"
import { sqlite } from "#adapters/sqlite.ts"
import { telemetry } from "#adapters/telemetry.ts"
import { openTokenStore } from "#adapters/token-store.ts"
import type { Log } from "#events/log.ts"
import { frontDoor } from "#gateway/front-door.ts"
import { TokenIssuer } from "#gateway/identity.ts"
import { requestMetrics } from "#gateway/metrics.ts"
import { type Mounted, mount } from "#gateway/routes.ts"
import { operations } from "#gateway/system/operations.ts"
import { OperationsApi } from "#gateway/system/operations-api.ts"
import { ReadModels } from "#gateway/system/read-models.ts"
import { systemService } from "#gateway/system/service.ts"
import { BlobStorageModel, blueprint } from "#projections/blob-storage/blueprint.ts"
import { published } from "#projections/blob-storage/published.ts"
import { type PublishedEvents, publisher } from "#projections/published-events.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { details } from "#verbs/audit-kinds.ts"
import { blobStorage } from "#verbs/blob-storage.ts"
import { lease_ttl_ms, leased } from "#verbs/leased.ts"
import { reloading, warnOfAddress } from "#verbs/reloading.ts"
import { settings, version } from "#verbs/root.ts"
import { exclusive } from "#verbs/session.ts"

/** Scopes and roles of the control token: what an operator at this machine may do. */
const control = {
  name: "control",
  scopes: ["blobs:read", "blobs:write", "cluster:admin"],
  roles: ["admin", "svc_admin"],
} as const

/** No service could start; the log says why of each. */
class NothingServed extends Schema.TaggedError<NothingServed>()("NothingServed", {
  message: Schema.String,
}) {}

/** What every service stands on: the log and who writes it, read models, published events. */
const machinery = (settings: Settings, node_id: string) => {
  const bus = Layer.mergeAll(
    host,
    publishedEventsJetStream(settings.nats.replicas),
    leasesJetStream({
      bucket: "ALMANAC_LEASES",
      holder: node_id,
      ttl_ms: lease_ttl_ms,
      replicas: settings.nats.replicas,
    }),
  ).pipe(Layer.provideMerge(exclusive(settings)))
  return Layer.mergeAll(BlobStorageModel.layer, SystemModel.layer(details)).pipe(
    Layer.provide(sqlite(join(settings.data.dir, "read-models"))),
    Layer.provideMerge(bus),
  )
}

/** The paths that belong to no service. */
const operating = Effect.gen(function* () {
  const blob_storage = yield* BlobStorageModel
  const system = yield* SystemModel
  const models = yield* Layer.build(
    ReadModels.layer(
      new Map([
        ["blob-storage", { ...blob_storage, part: blueprint.part }],
        ["system", { ...system, part: "" }],
      ]),
    ),
  )
  const known = yield* Effect.context<Log | PublishedEvents | SystemModel | TokenIssuer>()
  const layer = HttpApiBuilder.layer(OperationsApi).pipe(Layer.provide(operations))
  return {
    name: "operations",
    api: OperationsApi,
    routes: Effect.map(
      HttpRouter.toHttpEffect(layer),
      Effect.provideContext(Context.merge(known, models)),
    ),
    waitFor: system.waitFor,
  }
})

/** Who may ask what: the embedded identity, and the credentials that the first start makes. */
const identities = Effect.fnUntraced(function* (settings: Settings) {
  const { subscriber, servers } = yield* NatsServer
  const store = yield* openTokenStore(settings.data.dir)
  const credentials = yield* developmentCredentials(settings.data.dir, store, {
    url: servers.join(","),
    user: subscriber?.user ?? "",
    password: subscriber?.password === undefined ? "" : Redacted.value(subscriber.password),
  })
  return yield* Layer.build(identity(settings, store, credentials))
})

/** Tells the verbs beside this process where it is. */
const announce = Effect.fnUntraced(function* (settings: Settings, url: string) {
  const { servers, core } = yield* NatsServer
  const issuer = yield* TokenIssuer
  yield* issuer.revoke(control.name)
  yield* publishInstance(settings.data.dir, {
    url,
    nats: {
      url: servers.join(","),
      user: core.user ?? "",
      password: core.password ?? Redacted.make(""),
    },
    control_token: yield* issuer.issue(control),
    pid: process.pid,
    started_at: DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)),
  })
})

const curl = (settings: Settings, url: string) => {
  const file = JSON.stringify(developmentCredentialsPath(settings.data.dir))
  const token = `$(node -p 'require(${file}).blob.token')`
  return `curl -H "Authorization: Bearer ${token}" ${url}/v1/cluster/state`
}

/** Serves until it is interrupted. */
const run = Effect.fnUntraced(function* (settings: Settings, current: () => Settings) {
  const node_id = yield* nodeId(settings.cluster.node_id, settings.data.dir)
  yield* warnOfAddress(settings)
  const built = yield* Layer.build(machinery(settings, node_id))
  const serving = Effect.gen(function* () {
    const known = yield* identities(settings)
    yield* leased("system-publisher", node_id, () => publisher(published))
    yield* leased("system-checkpointer", node_id, () =>
      runProcess(
        checkpointer({
          commits: settings.audit.checkpoint_commits,
          seconds: settings.audit.checkpoint_seconds,
        }),
      ),
    )
    const { connection } = yield* NatsConnection
    yield* serveCommands(connection, "blob-storage", [Cluster, Volume])
    const advertised = yield* Deferred.make<string>()
    const blob_storage = yield* blobStorage({ settings, node_id, advertised })
    const services: ReadonlyArray<Mounted> = [yield* mount(blob_storage)]
    if (services.every(({ app }) => app === undefined)) {
      return yield* new NothingServed({ message: "No service could start." })
    }
    const operated = yield* Effect.provideContext(Effect.flatMap(operating, mount), known)
    const requests = requestMetrics()
    const process_text = yield* processMetrics
    const metrics = Effect.map(process_text, (text) => requests.text() + text)
    const system = yield* mount(
      yield* systemService({ services: [...services, operated], metrics }),
    )
    const door = yield* frontDoor([...services, operated, system], current, requests).pipe(
      Effect.provideContext(known),
    )
    const { port, url } = yield* httpServer(settings, door)
    const here = settings.cluster.advertise_address || `127.0.0.1:${port}`
    yield* Deferred.succeed(advertised, here)
    yield* blob_storage.joined
    yield* Effect.provideContext(announce(settings, url), known)
    yield* Console.log(`almanac ready ${url}`)
    yield* Console.error(`Credentials: ${developmentCredentialsPath(settings.data.dir)}`)
    yield* Console.error(curl(settings, url))
    return yield* Effect.never
  })
  return yield* Effect.provideContext(
    serving,
    Context.mergeAll(
      built,
      yield* Layer.build(httpTransport),
      yield* Layer.build(NodeHttpServer.layerHttpServices),
    ),
  )
})

export const serve = Command.make(
  "serve",
  {},
  Effect.fn(function* () {
    const first = yield* settings
    let current = () => first
    const observed = Layer.merge(
      logging(() => current().log.level),
      telemetry(first, version),
    )
    yield* Effect.gen(function* () {
      current = yield* reloading(first)
      return yield* run(first, current)
    }).pipe(Effect.scoped, Effect.provide(observed))
  }),
).pipe(
  Command.withDescription("Serve every enabled service until the process is told to stop"),
  Command.withExamples([
    { command: "almanac serve --set api.bind_port=0", description: "Serve on a free port" },
  ]),
)
