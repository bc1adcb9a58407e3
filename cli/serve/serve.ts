/**
 * `almanac serve`: runs the configured roles and services in one process, all by default. `npm
 * start` runs it. Source: decision 0140.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Context, Deferred, Effect, Layer, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { nodeId } from "#adapters/blob-storage/node.ts"
import { growHeap } from "#adapters/heap-growth.ts"
import { compress, pageFiles } from "#adapters/http/page-files.ts"
import { httpTransport } from "#adapters/http/transport.ts"
import { logging } from "#adapters/logging.ts"
import { telemetry } from "#adapters/telemetry.ts"
import { summaries } from "#cli/client/summaries.ts"
import { announce } from "#cli/instance.ts"
import { settings, sources } from "#cli/root.ts"
import { gettingStarted } from "#cli/serve/getting-started.ts"
import { LogGuard } from "#events/log-guard.ts"
import { openDoor } from "#gateway/door.ts"
import { requestMetrics } from "#gateway/metrics.ts"
import { type Mounted, mount } from "#gateway/routes.ts"
import { healthService } from "#gateway/system/health.ts"
import { systemService } from "#gateway/system/service.ts"
import { httpServer } from "#http"
import { settleMark } from "#journal"
import { newStopDeadline, StopDeadline } from "#processes"
import {
  ShareProtectionModel,
  blueprint as share_blueprint,
} from "#projections/share-protection/blueprint.ts"
import type { Role, Settings } from "#schemas/settings.ts"
import { blobStorage } from "#server/blob-storage/blob-storage.ts"
import { identities } from "#server/identities.ts"
import { infrastructure, workerBus } from "#server/infrastructure.ts"
import { allMetrics } from "#server/metrics.ts"
import { parentExit } from "#server/parent-exit.ts"
import { newOpening, type Opening, opens } from "#server/plant-disease/plant-disease.ts"
import { firstOf, modelProblem, publisherProblem } from "#server/problems.ts"
import { type SettingsSources, version } from "#server/program.ts"
import { published_types as published } from "#server/published.ts"
import { problemOf } from "#server/read-models.ts"
import { reloadableSettings, warnOfAddress } from "#server/reload.ts"
import { actors } from "#server/roles/actors.ts"
import { worker } from "#server/roles/agent.ts"
import { conductor } from "#server/roles/conductor.ts"
import { gateway } from "#server/roles/gateway.ts"
import { type RoleParts, roleParts } from "#server/roles/parts.ts"
import { conductedElsewhere } from "#server/share-protection/conductor.ts"
import { noteOfOthers, noteOfProfile } from "#server/share-protection/embedded.ts"

/** No service could start; the log has the reasons. */
class NothingServed extends Schema.TaggedError<NothingServed>()("NothingServed", {
  message: Schema.String,
}) {}

/** A role without paths, as a line in `/readyz`. */
const roleOf = (name: Role, ready: Mounted["ready"]) => ({ name, ready })

interface Process {
  readonly current: () => Settings
  readonly sources: SettingsSources
  readonly node_id: string
  readonly opening: Opening
  readonly parts: RoleParts
}

/** Starts the roles without paths; returns their `/readyz` lines. */
const background = Effect.fnUntraced(function* ({ current, sources, node_id, parts }: Process) {
  const settings = current()
  const { roles, services } = settings
  const hasRole = (role: Role) => roles.includes(role)
  const role_lines: Array<ReturnType<typeof roleOf>> = []
  const bus = yield* parts.bus
  let conductor_ready = yield* conductedElsewhere(bus)
  let shutdown: Effect.Effect<void> = Effect.void
  // Concurrently: each reads its part of the log from its own position.
  const models = hasRole("projections") || hasRole("gateway") ? parts.models : Effect.void
  const of_blobs = hasRole("projections") || hasRole("blob") ? parts.blobs : Effect.void
  yield* Effect.all([models, of_blobs], { concurrency: "unbounded", discard: true })
  if (hasRole("projections")) {
    const problem = problemOf(Context.get(yield* parts.models, ShareProtectionModel))
    const model = Context.get(yield* parts.models, ShareProtectionModel)
    const model_ready = yield* modelProblem("share-protection", share_blueprint.part, model)
    role_lines.push(roleOf("projections", firstOf(problem, yield* parts.commands, model_ready)))
  }
  if (hasRole("actors")) {
    yield* actors(settings)
    role_lines.push(roleOf("actors", yield* parts.commands))
  }
  if (hasRole("conductor")) {
    conductor_ready = yield* conductor(current, node_id, sources, parts)
    if (services.includes("share-protection")) shutdown = (yield* parts.outside).shutdown
    const publisher_ready = yield* publisherProblem
    role_lines.push(
      roleOf("conductor", firstOf(yield* parts.commands, conductor_ready, publisher_ready)),
    )
  } else if (hasRole("agent") && services.includes("share-protection")) {
    const agent = yield* worker(settings, sources)
    shutdown = agent.shutdown
    role_lines.push(roleOf("agent", firstOf(yield* parts.commands, agent.ready)))
  }
  return { role_lines, conductor_ready, shutdown }
})

/** The blob store and its paths, if enabled; `advertised` is its address for other nodes. */
const blobs = Effect.fnUntraced(function* (
  { current, node_id, parts }: Process,
  advertised: Deferred.Deferred<string>,
) {
  const settings = current()
  if (!settings.roles.includes("blob") || !settings.services.includes("blob-storage")) {
    return undefined
  }
  const model = yield* parts.blobs
  const live_nodes = yield* parts.live_nodes
  const options = { settings, node_id, advertised, live_nodes }
  return yield* Effect.provideContext(
    Effect.gen(function* () {
      const service = yield* blobStorage(options)
      const note = yield* parts.commands
      return { ...service, mounted: yield* mount({ ...service, note }) }
    }),
    model,
  )
})

/** Starts every role of this process; mounts those with paths. */
const startRoles = Effect.fnUntraced(function* (
  process: Process,
  advertised: Deferred.Deferred<string>,
) {
  const { current } = process
  const { role_lines, conductor_ready, shutdown } = yield* background(process)
  const store = yield* blobs(process, advertised)
  const is_gateway = current().roles.includes("gateway")
  const gateway_service = is_gateway
    ? yield* gateway({ ...process, conductor: conductor_ready })
    : undefined
  const mounted = [
    ...(store === undefined ? [] : [store.mounted]),
    ...(gateway_service?.mounted ?? []),
  ]
  if (mounted.length > 0 && mounted.every(({ app }) => app === undefined)) {
    return yield* new NothingServed({
      message: "No service could start. The log lines above have the reasons.",
    })
  }
  const of_store = store === undefined ? [] : [{ name: "blob-storage", text: store.metrics }]
  return {
    mounted: [...mounted, ...(gateway_service === undefined ? [] : [gateway_service.operations])],
    is_gateway,
    // A gateway's services already have `/readyz` lines.
    role_lines: is_gateway ? [] : role_lines,
    joined: store?.joined ?? Effect.void,
    internal: store?.internal,
    collectors: [...of_store, ...(gateway_service?.collectors ?? [])],
    serves: gateway_service?.serves ?? Effect.void,
    shutdown,
  }
})

type StartedRoles = Effect.Success<ReturnType<typeof startRoles>>

/** The end of the ready line: the services that could not start. The log has the reasons. */
const notStarted = ({ mounted }: StartedRoles) => {
  const names = mounted.filter(({ app }) => app === undefined).map(({ name }) => name)
  return names.length === 0 ? "" : ` (not started: ${names.join(", ")})`
}

/** Listens for requests to these services, health and metrics. */
const listen = Effect.fnUntraced(function* (
  { mounted, is_gateway, role_lines, collectors, internal, shutdown }: StartedRoles,
  current: () => Settings,
) {
  let is_ending = false
  const requests = requestMetrics()
  const settings = current()
  // Set once it listens; no request arrives earlier.
  let certificateEnds = (): number | undefined => undefined
  const metrics = yield* allMetrics({
    settings,
    requests,
    services: mounted,
    collectors,
    certificateEnds: () => certificateEnds(),
  })
  const guard = yield* LogGuard
  // A log with lost commits accepts no writes, so load balancers must send requests elsewhere.
  const closed = Effect.sync(guard.problem)
  const lines = [...mounted, ...role_lines].map((line) => ({
    ...line,
    ready: firstOf(closed, line.ready),
  }))
  const isEnding = () => is_ending
  const health = yield* mount(healthService({ services: lines, metrics, isEnding }))
  const pages = pageFiles(mounted.map(({ name }) => name))
  const system = is_gateway
    ? [yield* mount(yield* systemService({ services: mounted, pages, published, compress }))]
    : []
  const door = yield* openDoor([...mounted, ...system, health], current, requests)
  const { port, url, drain, ...listening } = yield* httpServer(settings, door, { internal })
  certificateEnds = listening.certificateEnds
  const deadline = yield* StopDeadline
  // The first shutdown step: workers stop while the server responds to the last requests. A process
  // without service paths is behind no load balancer.
  const drained = Effect.suspend(() => {
    const { drain_seconds } = current().api
    if (mounted.length === 0 || drain_seconds === 0) return Effect.void
    // The deadline starts after the drain.
    return Effect.andThen(drain(drain_seconds), deadline.begin)
  })
  yield* Effect.addFinalizer(() => {
    is_ending = true
    return Effect.logInfo("The process stops.").pipe(
      Effect.andThen(shutdown),
      Effect.andThen(drained),
    )
  })
  return { port, url }
})

/** Serves until interrupted. */
const run = Effect.fnUntraced(function* (
  settings: Settings,
  current: () => Settings,
  sources: SettingsSources,
) {
  yield* warnOfAddress(settings)
  yield* noteOfOthers(settings)
  const opening = yield* newOpening
  const is_gateway = settings.roles.includes("gateway")
  const has_plants = is_gateway && settings.services.includes("plant-disease")
  const model_layer = has_plants ? opens(settings, opening) : Layer.empty
  const serving = Effect.gen(function* () {
    const parts = yield* roleParts(settings, sources)
    const advertised = yield* Deferred.make<string>()
    const all = yield* startRoles({ current, sources, node_id, opening, parts }, advertised)
    yield* settleMark
    const { port, url } = yield* listen(all, current)
    const here = settings.cluster.advertise_address || `127.0.0.1:${port}`
    yield* Deferred.succeed(advertised, here)
    yield* all.joined
    yield* announce(settings, url, control_token)
    yield* Console.log(`almanac ready ${url}${notStarted(all)}`)
    yield* all.serves
    if (settings.services.includes("share-protection")) yield* noteOfProfile(settings)
    if (is_gateway) yield* Console.error(gettingStarted(settings, url).join("\n"))
    return yield* Effect.never
  })
  const base_context = yield* Layer.build(infrastructure(settings, model_layer))
  const node_id = yield* nodeId(settings.cluster.node_id, settings.data.dir)
  const { known, control_token } = yield* Effect.provideContext(identities(settings), base_context)
  const others = [httpTransport, NodeHttpServer.layerHttpServices] as const
  const context = yield* Effect.provideContext(
    Layer.build(Layer.mergeAll(...others, workerBus(settings))),
    base_context,
  )
  return yield* Effect.provideContext(serving, Context.mergeAll(base_context, known, context))
})

export const serve = Command.make(
  "serve",
  {
    "with-parent": Flag.Int("with-parent").pipe(
      Flag.withDescription(
        "For a child process: stop when standard input closes, and log it to this descriptor",
      ),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ "with-parent": stderr_fd }) {
    yield* Effect.sync(growHeap)
    const first = yield* settings
    let current = () => first
    const observed = Layer.merge(
      logging(() => current().log.level),
      telemetry(first, version),
    )
    yield* Effect.gen(function* () {
      current = yield* reloadableSettings(first, settings)
      const deadline = yield* StopDeadline
      const serving = run(first, current, yield* sources).pipe(Effect.ensuring(deadline.begin))
      return yield* Option.match(stderr_fd, {
        onNone: () => serving,
        onSome: (fd) => Effect.raceFirst(serving, parentExit(first.cluster.node_id, fd)),
      })
    }).pipe(
      Effect.scoped,
      Effect.provide(observed),
      Effect.provideService(StopDeadline, newStopDeadline()),
    )
  }),
).pipe(
  Command.withDescription(summaries.serve),
  Command.withExamples([
    { command: "almanac serve --set api.bind_port=0", description: "Serve on a free port" },
  ]),
)
