/** How this deployment of share protection is set up, and who tells whether it works. */
import { Context, type Effect } from "effect"
import type { Shape } from "#gateway/share-protection/shapes/shape.ts"
import type { Settings } from "#schemas/settings.ts"

export class Deployment extends Context.Service<
  Deployment,
  {
    readonly shape: Shape
    /** Asked for each request, so that what is reloadable applies at once. */
    readonly settings: () => Settings
    /** Why the conductor does not do its work; undefined when it does. */
    readonly conductor: Effect.Effect<string | undefined>
  }
>()("gateway/share-protection/Deployment") {}
