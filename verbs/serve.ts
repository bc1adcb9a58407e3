/** `almanac serve`: every enabled service in one process. What `npm start` runs. */
import { setFlagsFromString } from "node:v8"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import {
  Clock,
  Console,
  Context,
  DateTime,
  Deferred,
  Effect,
  Layer,
  Option,
  Redacted,
  Schema,
} from "effect"
import { Command, Flag } from "effect/cli"
import { HttpApiBuilder } from "effect/http-api"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { agentsNats } from "#adapters/agents-nats.ts"
import { serveCommands } from "#adapters/commands-nats.ts"
import { developmentCredentialsPath } from "#adapters/development-credentials.ts"
import { httpServer, type InternalDoor } from "#adapters/http-server.ts"
import { httpTransport } from "#adapters/http-transport.ts"
import { publishInstance } from "#adapters/instance-file.ts"
import { leasesJetStream } from "#adapters/leases-jetstream.ts"
import { liveWorkersNats } from "#adapters/live-workers-nats.ts"
import { logging } from "#adapters/logging.ts"
import { NatsConnection } from "#adapters/nats-connection.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import { nodeId } from "#adapters/node.ts"
import { pageFiles } from "#adapters/page-files.ts"
import { processMetrics } from "#adapters/process-metrics.ts"
import { publishedEventsJetStream } from "#adapters/published-events-jetstream.ts"
import { telemetry } from "#adapters/telemetry.ts"
import { threadRest } from "#adapters/thread-share.ts"
import { serveWorkers } from "#adapters/worker-commands.ts"
import { Log } from "#events/log.ts"
import { frontDoor } from "#gateway/front-door.ts"
import { SecretKeeper, TokenIssuer, TrustIssuer } from "#gateway/identity.ts"
import { requestMetrics } from "#gateway/metrics.ts"
import { appOf, type Mounted, mount } from "#gateway/routes.ts"
import { Charts } from "#gateway/system/charts.ts"
import { operations } from "#gateway/system/operations.ts"
import { OperationsApi } from "#gateway/system/operations-api.ts"
import { type Operated, ReadModels } from "#gateway/system/read-models.ts"
import { systemService } from "#gateway/system/service.ts"
import { BlobStorageModel, blueprint } from "#projections/blob-storage/blueprint.ts"
import {
  CapitalPressureModel,
  blueprint as capital_blueprint,
} from "#projections/capital-pressure/blueprint.ts"
import { PublishedEvents, publisher } from "#projections/published-events.ts"
import { Rest } from "#projections/read-model.ts"
import {
  ShareProtectionModel,
  blueprint as share_blueprint,
} from "#projections/share-protection/blueprint.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { WebhookModel, blueprint as webhook_blueprint } from "#projections/system/webhook-model.ts"
import type { Settings } from "#schemas/settings.ts"
import { capital_pressure, details, share_protection } from "#verbs/audit-kinds.ts"
import { blobStorage } from "#verbs/blob-storage.ts"
import { capitalPressure } from "#verbs/capital-pressure.ts"
import { capitalScheduler } from "#verbs/capital-scheduler.ts"
import { carrierSearch } from "#verbs/carrier-search.ts"
import { charts } from "#verbs/charts.ts"
import { cloud } from "#verbs/cloud.ts"
import { conducting } from "#verbs/conductor.ts"
import { embedded, noteOfProfile } from "#verbs/embedded.ts"
import { lease_ttl_ms, leased } from "#verbs/leased.ts"
import { outside } from "#verbs/outside.ts"
import { newOpening, type Opening, opens, plantDisease } from "#verbs/plant-disease.ts"
import { publications, published_types as published } from "#verbs/published.ts"
import { databases } from "#verbs/read-models.ts"
import { reloading, warnOfAddress } from "#verbs/reloading.ts"
import { type SettingsSources, settings, sources, version } from "#verbs/root.ts"
import { exclusive, witnessing } from "#verbs/session.ts"
import { shareProtection } from "#verbs/share-protection.ts"
import { deliverWebhooks, webhookMachinery, webhookPorts } from "#verbs/webhooks.ts"
import { parentGone } from "#verbs/with-parent.ts"
import { serveEntry } from "#verbs/worker-entry.ts"

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
const machinery = (settings: Settings, node_id: string, opening: Opening) => {
  const has_plants = settings.services.includes("plant-disease")
  const bus = Layer.mergeAll(
    host,
    publishedEventsJetStream(settings.nats.replicas),
    leasesJetStream({
      bucket: "ALMANAC_LEASES",
      holder: node_id,
      ttl_ms: lease_ttl_ms,
      replicas: settings.nats.replicas,
    }),
  ).pipe(
    Layer.provideMerge(exclusive(settings, has_plants ? opens(settings, opening) : Layer.empty)),
  )
  const models = [BlobStorageModel.layer, ShareProtectionModel.layer] as const
  // Operators ask for it now and then, and requests have the thread before it.
  const audit = SystemModel.layer(details, settings.audit.index).pipe(
    Layer.provide(Layer.sync(Rest, threadRest)),
  )
  const hooks = webhookMachinery(settings)
  return Layer.mergeAll(...models, audit, hooks).pipe(
    Layer.provide(databases(settings)),
    Layer.provideMerge(bus),
  )
}

/**
 * The dashboard's read model, or undefined: an operator names its file, so that it may be in no
 * folder, or another program's. Then the dashboard alone fails.
 */
const dashboardModel = (settings: Settings) =>
  Layer.build(CapitalPressureModel.layer.pipe(Layer.provide(databases(settings)))).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logError("The dashboard's read model is not kept.", cause), undefined),
    ),
  )

type DashboardModel = Context.Context<CapitalPressureModel> | undefined

/** The paths that belong to no service. */
const operating = Effect.fnUntraced(function* (settings: Settings, dashboard: DashboardModel) {
  const blob_storage = yield* BlobStorageModel
  const share_protection = yield* ShareProtectionModel
  const system = yield* SystemModel
  const capital = dashboard === undefined ? [] : [Context.get(dashboard, CapitalPressureModel)]
  const models = yield* Layer.build(
    ReadModels.layer(
      new Map<string, Operated>([
        ["blob-storage", { ...blob_storage, part: blueprint.part }],
        ["share-protection", { ...share_protection, part: share_blueprint.part }],
        ...capital.map(
          (model) => ["capital-pressure", { ...model, part: capital_blueprint.part }] as const,
        ),
        ...(system.is_kept === false ? [] : [["system", { ...system, part: "" }] as const]),
        ["system-webhook", { ...(yield* WebhookModel), part: webhook_blueprint.part }],
      ]),
    ),
  )
  const around = yield* Effect.context<
    Log | PublishedEvents | SystemModel | SecretKeeper | TokenIssuer | TrustIssuer
  >()
  const known = around.pipe(
    Context.pick(Log, PublishedEvents, SystemModel, SecretKeeper, TokenIssuer, TrustIssuer),
  )
  const hooks = yield* webhookPorts(settings)
  const witnesses = yield* Layer.build(witnessing(settings))
  const layer = HttpApiBuilder.layer(OperationsApi).pipe(Layer.provide(operations))
  return {
    name: "operations",
    api: OperationsApi,
    routes: appOf(layer, Context.mergeAll(known, models, Charts.context(charts), hooks, witnesses)),
    waitFor: system.waitFor,
  }
})

/** The identity, and what goes with it; the embedded one's first start makes credentials. */
const identities = Effect.fnUntraced(function* (settings: Settings) {
  if (settings.identity.kind === "keystone") return yield* cloud(settings)
  const { subscriber, servers } = yield* NatsServer
  return yield* embedded(settings, {
    url: servers.join(","),
    user: subscriber?.user ?? "",
    password: subscriber?.password === undefined ? "" : Redacted.value(subscriber.password),
  })
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

/** What happens by itself for all services, on one process of all. */
const upkeep = Effect.fnUntraced(function* (settings: Settings, node_id: string) {
  yield* leased("system-publisher", node_id, () => publisher(publications))
  yield* deliverWebhooks(settings, node_id)
  const { checkpoint_commits: commits, checkpoint_seconds: seconds } = settings.audit
  yield* leased("system-checkpointer", node_id, () =>
    runProcess(checkpointer({ commits, seconds })),
  )
})

/** Share protection with its workers, whom it hears and carries out the commands of. */
const protection = Effect.fnUntraced(function* (
  current: () => Settings,
  node_id: string,
  sources: SettingsSources,
) {
  const { connection } = yield* NatsConnection
  const { workers } = yield* NatsServer
  yield* serveCommands(connection, "share-protection", share_protection)
  yield* serveWorkers(connection)
  if (workers !== undefined) yield* serveEntry(connection, workers)
  const { services, jobs, farewell } = yield* outside(current(), sources)
  const conductor = yield* conducting(node_id, current, services)
  const told = { conductor, jobs: Effect.succeed(jobs), outside: services }
  const service = yield* shareProtection({ settings: current, ...told })
  return { mounted: yield* mount(service), farewell }
})

/** The dashboard; without its read model it reads what is in its file, or answers 500. */
const dashboardService = Effect.fnUntraced(function* (
  settings: Settings,
  node_id: string,
  sources: SettingsSources,
  model: DashboardModel,
) {
  if (model === undefined) return yield* mount(yield* capitalPressure({ settings }))
  const { connection } = yield* NatsConnection
  yield* serveCommands(connection, "capital-pressure", capital_pressure)
  yield* capitalScheduler(node_id, settings, sources)
  return yield* mount(yield* Effect.provideContext(capitalPressure({ settings }), model))
})

/** The enabled services; `advertised` is where other nodes reach this process. */
const enabled = Effect.fnUntraced(function* (
  current: () => Settings,
  sources: SettingsSources,
  node_id: string,
  advertised: Deferred.Deferred<string>,
  dashboard: DashboardModel,
  opening: Opening,
) {
  const settings = current()
  const mounted: Array<Mounted> = []
  let joined: Effect.Effect<void> = Effect.void
  let farewell: Effect.Effect<void> = Effect.void
  let internal: InternalDoor | undefined
  const measures: Array<Effect.Effect<string>> = []
  if (settings.services.includes("blob-storage")) {
    const blob_storage = yield* blobStorage({ settings, node_id, advertised })
    mounted.push(yield* mount(blob_storage))
    joined = blob_storage.joined
    internal = blob_storage.internal
    measures.push(blob_storage.metrics)
  }
  if (settings.services.includes("share-protection")) {
    const share_protection = yield* protection(current, node_id, sources)
    mounted.push(share_protection.mounted)
    farewell = share_protection.farewell
  }
  if (settings.services.includes("capital-pressure")) {
    mounted.push(yield* dashboardService(settings, node_id, sources, dashboard))
  }
  if (settings.services.includes("carrier-search")) {
    mounted.push(yield* mount(yield* carrierSearch({ settings, node_id })))
  }
  let said: Effect.Effect<void> = Effect.void
  if (settings.services.includes("plant-disease")) {
    const plants = plantDisease({ settings, node_id, opening })
    mounted.push(yield* mount(plants.service))
    measures.push(plants.metrics)
    said = plants.said
  }
  if (mounted.every(({ app }) => app === undefined)) {
    return yield* new NothingServed({ message: "No service could start." })
  }
  const measured = Effect.map(Effect.all(measures), (texts) => texts.join(""))
  return { mounted, joined, internal, farewell, measured, said }
})

/** The bus to the workers, over which they are asked and heard. */
const workerBus = ({ worker }: Settings) =>
  Layer.unwrap(
    Effect.map(NatsConnection, ({ connection }) =>
      Layer.merge(agentsNats(connection, worker), liveWorkersNats(connection)),
    ),
  )

/** Serves until it is interrupted. */
const run = Effect.fnUntraced(function* (
  settings: Settings,
  current: () => Settings,
  sources: SettingsSources,
) {
  const node_id = yield* nodeId(settings.cluster.node_id, settings.data.dir)
  yield* warnOfAddress(settings)
  const opening = yield* newOpening
  const serving = Effect.gen(function* () {
    yield* upkeep(settings, node_id)
    const advertised = yield* Deferred.make<string>()
    const dashboard = yield* dashboardModel(settings)
    const { mounted, joined, internal, farewell, measured, said } = yield* enabled(
      ...([current, sources, node_id, advertised, dashboard, opening] as const),
    )
    const services = [...mounted, yield* Effect.flatMap(operating(settings, dashboard), mount)]
    const requests = requestMetrics()
    const process_text = yield* processMetrics
    const metrics = Effect.zipWith(measured, process_text, (of_services, text) => {
      return requests.text() + of_services + text
    })
    const pages = pageFiles(services.map(({ name }) => name))
    const system = yield* mount(yield* systemService({ services, metrics, pages, published }))
    const door = yield* frontDoor([...services, system], current, requests)
    const { port, url } = yield* httpServer(settings, door, internal)
    // The first to be done at the end: workers stop while the last requests are answered.
    yield* Effect.addFinalizer(() => farewell)
    const here = settings.cluster.advertise_address || `127.0.0.1:${port}`
    yield* Deferred.succeed(advertised, here)
    yield* joined
    yield* announce(settings, url)
    yield* Console.log(`almanac ready ${url}`)
    yield* said
    if (settings.services.includes("share-protection")) yield* noteOfProfile(settings)
    if (settings.identity.kind === "embedded") {
      yield* Console.error(`Credentials: ${developmentCredentialsPath(settings.data.dir)}`)
      yield* Console.error(curl(settings, url))
    }
    return yield* Effect.never
  })
  const built = yield* Layer.build(machinery(settings, node_id, opening))
  const known = yield* Effect.provideContext(identities(settings), built)
  const others = [httpTransport, NodeHttpServer.layerHttpServices] as const
  const around = yield* Effect.provideContext(
    Layer.build(Layer.mergeAll(...others, workerBus(settings))),
    built,
  )
  return yield* Effect.provideContext(serving, Context.mergeAll(built, known, around))
})

/**
 * The bytes of requests are no part of V8's heap, but by its own rule it collects all of the heap
 * for each 64 MB of them; counted with the heap they go with the next collection that is due. That
 * one is due when both have grown to three times of what is live: after idle time V8 takes a tenth
 * more, which one get of 16 MiB is, and counts on the heap alone to grow out of it.
 */
const collectWithHeap = Effect.sync(() => {
  setFlagsFromString("--external-memory-accounted-in-global-limit")
  setFlagsFromString("--heap-growing-percent=200")
})

export const serve = Command.make(
  "serve",
  {
    "with-parent": Flag.Int("with-parent").pipe(
      Flag.withDescription(
        "For a child: end with standard input, and say so to this file descriptor",
      ),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ "with-parent": told_fd }) {
    yield* collectWithHeap
    const first = yield* settings
    let current = () => first
    const observed = Layer.merge(
      logging(() => current().log.level),
      telemetry(first, version),
    )
    yield* Effect.gen(function* () {
      current = yield* reloading(first)
      const serving = run(first, current, yield* sources)
      return yield* Option.match(told_fd, {
        onNone: () => serving,
        onSome: (fd) => Effect.raceFirst(serving, parentGone(first.cluster.node_id, fd)),
      })
    }).pipe(Effect.scoped, Effect.provide(observed))
  }),
).pipe(
  Command.withDescription("Serve every enabled service until the process is told to stop"),
  Command.withExamples([
    { command: "almanac serve --set api.bind_port=0", description: "Serve on a free port" },
  ]),
)
