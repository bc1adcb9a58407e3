/** The port to the registries that are set up. Source: decisions, carrier registry. */
import { Context, type Effect, Schema } from "effect"
import type { Registry } from "#actors/carrier-search/registry.ts"
import type { Source } from "#schemas/carrier-search/source.ts"

/** None is set up, or the one that the settings name is not; `detail` says what to do. */
export class NoRegistry extends Schema.TaggedError<NoRegistry>()("NoRegistry", {
  detail: Schema.String,
}) {}

/** The one that answers now. */
export interface InUse {
  readonly name: "fmcsa" | "mirror"
  readonly registry: Registry["Service"]
}

export class Registries extends Context.Service<
  Registries,
  {
    /** Asked anew for each search: a mirror may be filled while the server runs. */
    readonly in_use: Effect.Effect<InUse, NoRegistry>
    /** All that are set up, the one in use first; where none is, what to do about it. */
    readonly sources: Effect.Effect<ReadonlyArray<Source>>
  }
>()("gateway/carrier-search/Registries") {}
