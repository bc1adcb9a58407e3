/** Configuration of this deployment of share protection, and the health of its conductor. */
import { Context, type Effect } from "effect"
import type { Shape } from "#gateway/share-protection/shapes/shape.ts"
import type { Settings } from "#schemas/settings.ts"

export class Deployment extends Context.Service<
  Deployment,
  {
    readonly shape: Shape
    /** Called for each request, so that reloadable settings apply immediately. */
    readonly settings: () => Settings
    /** Why the conductor is not working; undefined if it is. */
    readonly conductor: Effect.Effect<string | undefined>
  }
>()("gateway/share-protection/Deployment") {}
