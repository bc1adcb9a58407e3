/** Setup for tests of feeds: a folder, a metric, and feeds that call a server. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { Feeds } from "#actors/capital-pressure/feeds.ts"
import { type FeedsHttpOptions, feedsHttp } from "#adapters/capital-pressure/feeds-http.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"
import { optionsAt, publisher } from "./publisher.ts"

/** A folder for the life of the scope. */
export const tempFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "almanac-feeds-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true })),
)

export const metricOf = (id: string): Metric => {
  const metric = findMetric(id)
  if (!metric) throw new Error(`${id} is not registered`)
  return metric
}

/** A server of all publishers, feeds that call it, and the folder for their validators. */
export const given = Effect.fnUntraced(function* (changes: Partial<FeedsHttpOptions> = {}) {
  const fake = yield* publisher()
  const folder = yield* tempFolder
  const options = { ...optionsAt(fake.url, folder), ...changes }
  return { fake, folder, options, ...(yield* feedsWith(options)) }
})

/** New feeds on each call, for the life of the scope, as in another process. */
export const feedsWith = (options: FeedsHttpOptions) =>
  Effect.flatMap(Effect.scope, (scope) =>
    Effect.map(Layer.buildWithScope(Layer.fresh(feedsHttp(options)), scope), (context) =>
      Context.get(context, Feeds),
    ),
  )
