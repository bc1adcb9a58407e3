/** The capital pressure dashboard in this process: its API. */
import { Context, Effect, Layer, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { capitalFile } from "#adapters/capital-pressure/dashboard-file.ts"
import { capitalReader } from "#adapters/capital-pressure/reader.ts"
import { CapitalPressureApi } from "#gateway/capital-pressure/api.ts"
import { dashboard } from "#gateway/capital-pressure/dashboard.ts"
import { DashboardReader } from "#gateway/capital-pressure/dashboard-reader.ts"
import { appOf } from "#gateway/routes.ts"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import { Behind } from "#projections/waiters.ts"
import type { Settings } from "#schemas/settings.ts"

export interface CapitalPressureOptions {
  readonly settings: Settings
}

const unkept = new Behind({ detail: "The dashboard's read model could not be opened." })

/**
 * The service to mount. It reads only the read model's file. Without the model or the file,
 * requests get 500 and /health still works (decisions of document 3, dashboard storage).
 */
export const capitalPressure = Effect.fnUntraced(function* ({ settings }: CapitalPressureOptions) {
  const model = yield* Effect.serviceOption(CapitalPressureModel)
  const path = capitalFile(settings)
  const built = yield* Layer.build(capitalReader({ path, scheduler: settings.capital.scheduler }))
  const reader = Context.get(built, DashboardReader)
  const layer = HttpApiBuilder.layer(CapitalPressureApi).pipe(Layer.provide(dashboard))
  return {
    name: "capital-pressure",
    api: CapitalPressureApi,
    routes: appOf(layer, built),
    waitFor: Option.match(model, {
      onNone: () => () => Effect.fail(unkept),
      onSome: ({ waitFor }) => waitFor,
    }),
    ready: reader.problem,
  }
})
