/**
 * The role `gateway`: the operations API and the APIs of the enabled services, except blobs, whose
 * API is in the process of their store. Source: decision 0140.
 */
import { Context, Effect, Layer, Option } from "effect"
import { type Mounted, mount } from "#gateway/routes.ts"
import { shareProtectionMetrics } from "#gateway/share-protection/metrics.ts"
import type { Collector } from "#gateway/system/metrics.ts"
import { blueprint, CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import {
  ShareProtectionModel,
  blueprint as share_blueprint,
} from "#projections/share-protection/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { capitalPressure } from "#server/capital-pressure/capital-pressure.ts"
import { carrierSearch } from "#server/carrier-search/carrier-search.ts"
import { operationsService } from "#server/operations.ts"
import { type Opening, plantDisease } from "#server/plant-disease/plant-disease.ts"
import { firstOf, modelProblem } from "#server/problems.ts"
import type { RoleParts } from "#server/roles/parts.ts"
import { shareProtection } from "#server/share-protection/share-protection.ts"

/**
 * The dashboard's read model; undefined if it cannot be opened, because operators choose its file.
 * Then only the dashboard fails.
 */
const dashboardModel = Layer.build(CapitalPressureModel.layer).pipe(
  Effect.catchCause((cause) =>
    Effect.as(Effect.logError("The dashboard's read model is not updated.", cause), undefined),
  ),
)

type DashboardModel = Effect.Success<typeof dashboardModel>

/** The dashboard. Without its read model it reads its file, or responds with 500. */
const dashboardService = Effect.fnUntraced(function* (settings: Settings, model: DashboardModel) {
  const service = capitalPressure({ settings })
  if (model === undefined) return yield* mount(yield* service)
  const known = yield* Effect.provideContext(service, model)
  const read_model = Context.get(model, CapitalPressureModel)
  const ready = firstOf(known.ready, yield* modelProblem(known.name, blueprint.part, read_model))
  return yield* mount({ ...known, ready })
})

export interface GatewayOptions {
  readonly current: () => Settings
  readonly node_id: string
  readonly opening: Opening
  readonly parts: RoleParts
  /** Why the conductor does not work, as far as this process knows. */
  readonly conductor: Effect.Effect<string | undefined>
}

/**
 * Share protection. Without the bus it cannot change anything, so it is not ready and clients
 * should use another process.
 */
const protection = Effect.fnUntraced(function* ({ current, parts, conductor }: GatewayOptions) {
  const models = yield* parts.models
  const { services, jobs } = yield* parts.outside
  const commands = yield* parts.commands
  const status = {
    conductor: firstOf(commands, conductor),
    jobs: Effect.succeed(jobs),
    outside: services,
  }
  const service = shareProtection({ settings: current, ...status })
  const known = yield* Effect.provideContext(service, models)
  const read_model = Context.get(models, ShareProtectionModel)
  const model = yield* modelProblem(known.name, share_blueprint.part, read_model)
  const ready = firstOf(known.ready, commands, model)
  const mounted = yield* Effect.provideContext(mount({ ...known, ready }), models)
  const texts = yield* Effect.provideContext(shareProtectionMetrics, models)
  const collectors: ReadonlyArray<Collector> = [
    { name: "share-protection", text: texts.statistics },
    { name: "coverage", text: texts.coverage },
  ]
  return { mounted, collectors }
})

/** The mounted services and their metrics; run `serves` once the process serves. */
export const gateway = Effect.fnUntraced(function* (options: GatewayOptions) {
  const { current, node_id, opening, parts } = options
  const settings = current()
  const mounted: Array<Mounted> = []
  const collectors: Array<Collector> = []
  let serves: Effect.Effect<void> = Effect.void
  const dashboard = yield* dashboardModel
  if (settings.services.includes("share-protection")) {
    const share_protection = yield* protection(options)
    mounted.push(share_protection.mounted)
    collectors.push(...share_protection.collectors)
  }
  if (settings.services.includes("capital-pressure")) {
    mounted.push(yield* dashboardService(settings, dashboard))
  }
  const plants = settings.services.includes("plant-disease")
    ? plantDisease({ settings, node_id, opening })
    : undefined
  const searches = settings.services.includes("carrier-search")
    ? Effect.asSome(Effect.flatMap(carrierSearch({ settings, node_id }), mount))
    : Effect.succeedNone
  const predictions = plants ? Effect.asSome(mount(plants.service)) : Effect.succeedNone
  // Concurrently, because each waits for its own thread to open its spool.
  const spooling = yield* Effect.all([searches, predictions], { concurrency: "unbounded" })
  mounted.push(...spooling.flatMap(Option.toArray))
  if (plants !== undefined) {
    collectors.push({ name: "plant-disease", text: plants.metrics })
    serves = plants.serves
  }
  const capital = dashboard && Context.get(dashboard, CapitalPressureModel)
  const operations = yield* operationsService(settings, parts, capital)
  collectors.push(...operations.collectors)
  return { mounted, operations: yield* mount(operations.service), collectors, serves }
})
