/** Session of a dashboard command without a running instance: locks the data folder. */
import { Effect, Layer } from "effect"
import { host } from "#actors/host.ts"
import { capitalFile } from "#adapters/capital-pressure/dashboard-file.ts"
import { DashboardFile } from "#cli/dashboard/dashboard-file.ts"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { databases } from "#server/read-models.ts"
import { exclusive } from "#server/session.ts"

/** Like capitalSession, with exclusive access: this process runs the bus and the read model. */
export const exclusiveSession = (settings: Settings) => {
  const path = capitalFile(settings)
  const file = Layer.effect(
    DashboardFile,
    Effect.map(CapitalPressureModel, ({ position }) => ({ path, position })),
  )
  return Layer.merge(
    host,
    file.pipe(Layer.provide(CapitalPressureModel.layer), Layer.provide(databases(settings))),
  ).pipe(Layer.provideMerge(exclusive(settings)))
}
