/** Carrier search in this process: its registries, its spool, its API. */
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { searches } from "#actors/carrier-search/search.ts"
import { SearchSpool } from "#actors/carrier-search/search-spool.ts"
import { answerBufferFile } from "#adapters/carrier-search/response-buffer-file.ts"
import { CarrierSearchApi } from "#gateway/carrier-search/api.ts"
import { Registries } from "#gateway/carrier-search/registries.ts"
import { searching } from "#gateway/carrier-search/search.ts"
import { appOf } from "#gateway/routes.ts"
import type { Settings } from "#schemas/settings.ts"
import { carrierRegistries } from "#server/carrier-search/registries.ts"
import { openSpool } from "#server/spool.ts"

export interface CarrierSearchOptions {
  readonly settings: Settings
  readonly node_id: string
}

/** Why searches fail although the service runs; undefined if they succeed. */
const noteOf = ({ in_use }: Registries["Service"]) =>
  in_use.pipe(
    Effect.flatMap(({ name, registry }) =>
      // The mirror runs in a thread, which only a search should start.
      name === "mirror"
        ? Effect.succeed(undefined)
        : Effect.map(registry.source, ({ detail }) => detail ?? undefined),
    ),
    Effect.catch(({ detail }) => Effect.succeed(detail)),
    Effect.map((detail) => (detail === undefined ? undefined : `searches fail: ${detail}`)),
  )

/** The service to mount, until the scope closes. Each search reports unavailable registries. */
export const carrierSearch = Effect.fnUntraced(function* (options: CarrierSearchOptions) {
  const { settings, node_id } = options
  const registries = yield* carrierRegistries(settings)
  const layer = HttpApiBuilder.layer(CarrierSearchApi).pipe(
    Layer.provide(searching(settings.carrier.max_range)),
  )
  const start = Effect.gen(function* () {
    // In the data folder, because the system's temporary folder may be in memory.
    const buffers = yield* Layer.build(answerBufferFile({ dir: join(settings.data.dir, "run") }))
    const spool = yield* openSpool(settings, node_id, searches)
    const known = buffers.pipe(Context.add(Registries, registries), Context.add(SearchSpool, spool))
    return yield* appOf(layer, known)
  })
  return { name: "carrier-search", api: CarrierSearchApi, routes: start, note: noteOf(registries) }
})
