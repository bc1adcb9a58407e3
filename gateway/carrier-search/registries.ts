/** The port to the configured registries. Source: decisions, carrier registry. */
import { Context, type Effect, Schema } from "effect"
import type { Registry } from "#actors/carrier-search/registry.ts"
import type { Source } from "#schemas/carrier-search/source.ts"

/** No registry is configured, or the configured one is unavailable; `detail` says what to do. */
export class NoRegistry extends Schema.TaggedError<NoRegistry>()("NoRegistry", {
  detail: Schema.String,
}) {}

/** The registry in use. */
export interface InUse {
  readonly name: "fmcsa" | "mirror"
  readonly registry: Registry["Service"]
}

export class Registries extends Context.Service<
  Registries,
  {
    /** Read for each search, because a mirror may be filled while the server runs. */
    readonly in_use: Effect.Effect<InUse, NoRegistry>
    /**
     * All configured registries, the one in use first. If there is none, an entry that says what to
     * do.
     */
    readonly sources: Effect.Effect<ReadonlyArray<Source>>
  }
>()("gateway/carrier-search/Registries") {}
