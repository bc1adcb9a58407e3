/**
 * The role `gateway`: the paths of the enabled services, but for blobs, which are where their store
 * is, and the paths of no service. Source: decision 0140.
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
import { operating } from "#server/operating.ts"
import { type Opening, plantDisease } from "#server/plant-disease/plant-disease.ts"
import type { RoleParts } from "#server/roles/parts.ts"
import { shareProtection } from "#server/share-protection/share-protection.ts"
import { firstOf, modelTrouble } from "#server/troubles.ts"

/**
 * The dashboard's read model, or undefined: an operator names its file, so that it may be in no
 * folder, or another program's. Then the dashboard alone fails.
 */
const dashboardModel = Layer.build(CapitalPressureModel.layer).pipe(
  Effect.catchCause((cause) =>
    Effect.as(Effect.logError("The dashboard's read model is not kept.", cause), undefined),
  ),
)

type DashboardModel = Effect.Success<typeof dashboardModel>

/** The dashboard; without its read model it reads what is in its file, or answers 500. */
const dashboardService = Effect.fnUntraced(function* (settings: Settings, model: DashboardModel) {
  const service = capitalPressure({ settings })
  if (model === undefined) return yield* mount(yield* service)
  const known = yield* Effect.provideContext(service, model)
  const kept = Context.get(model, CapitalPressureModel)
  const ready = firstOf(known.ready, yield* modelTrouble(known.name, blueprint.part, kept))
  return yield* mount({ ...known, ready })
})

export interface GatewayOptions {
  readonly current: () => Settings
  readonly node_id: string
  readonly opening: Opening
  readonly parts: RoleParts
  /** Why the conductor does not do its work, as far as this process knows. */
  readonly conductor: Effect.Effect<string | undefined>
}

/**
 * Share protection, whose workers and machines are outside. Without the bus it changes nothing, so
 * other processes are to be asked.
 */
const protection = Effect.fnUntraced(function* ({ current, parts, conductor }: GatewayOptions) {
  const models = yield* parts.models
  const { services, jobs } = yield* parts.outside
  const commands = yield* parts.commands
  const told = {
    conductor: firstOf(commands, conductor),
    jobs: Effect.succeed(jobs),
    outside: services,
  }
  const service = shareProtection({ settings: current, ...told })
  const known = yield* Effect.provideContext(service, models)
  const shown = Context.get(models, ShareProtectionModel)
  const model = yield* modelTrouble(known.name, share_blueprint.part, shown)
  const ready = firstOf(known.ready, commands, model)
  const mounted = yield* Effect.provideContext(mount({ ...known, ready }), models)
  const texts = yield* Effect.provideContext(shareProtectionMetrics, models)
  const collectors: ReadonlyArray<Collector> = [
    { name: "share-protection", text: texts.standing },
    { name: "coverage", text: texts.coverage },
  ]
  return { mounted, collectors }
})

/** Mounted, with their metrics; `serves` is run once the process does. */
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
  // Both at once: each waits for a thread of its own to open its spool.
  const spooling = yield* Effect.all([searches, predictions], { concurrency: "unbounded" })
  mounted.push(...spooling.flatMap(Option.toArray))
  if (plants !== undefined) {
    collectors.push({ name: "plant-disease", text: plants.metrics })
    serves = plants.serves
  }
  const capital = dashboard && Context.get(dashboard, CapitalPressureModel)
  const operations = yield* operating(settings, parts, capital)
  collectors.push(...operations.collectors)
  return { mounted, operations: yield* mount(operations.service), collectors, serves }
})
