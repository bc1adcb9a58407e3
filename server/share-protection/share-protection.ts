/** Share protection in this process: its API. */
import { Context, Effect } from "effect"
import { Commands } from "#actors/commands.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { appOf } from "#gateway/routes.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { served } from "#gateway/share-protection/routes.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { Transport } from "#gateway/transport.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { problemOf } from "#server/read-models.ts"

export interface ShareProtectionOptions {
  /** Called for each request, except for the shape, which is fixed at startup. */
  readonly settings: () => Settings
  /** Why the conductor does not work; undefined if it does. */
  readonly conductor: Effect.Effect<string | undefined>
  /** Why jobs stay queued; undefined if they do not. */
  readonly jobs: Effect.Effect<string | undefined>
  /** Buckets and Images, if available; requests that need a missing one get 503. */
  readonly outside: Context.Context<never>
}

/** The service to mount. Its read model and ports come from the context and outlive it. */
export const shareProtection = Effect.fnUntraced(function* (options: ShareProtectionOptions) {
  const { settings, conductor, jobs, outside } = options
  const model = yield* ShareProtectionModel
  const shape = settings().api.shape === "A" ? shape_a : shape_b
  const { api, routes } = served(shape)
  const start = Effect.gen(function* () {
    const around = yield* Effect.context<
      Commands | LiveWorkers | ShareProtectionModel | Shares | Transport | Trusts | Vault
    >()
    const known = around.pipe(
      Context.pick(Commands, LiveWorkers, ShareProtectionModel, Shares, Transport, Trusts, Vault),
      Context.merge(outside),
      Context.add(Deployment, Deployment.of({ shape, settings, conductor })),
    )
    return yield* appOf(routes, known)
  })
  const ready = problemOf(model)
  return { name: "share-protection", api, routes: start, waitFor: model.waitFor, ready, note: jobs }
})
