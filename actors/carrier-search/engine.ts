/**
 * Searches ranges of a registry that has only single lookups: fast, within the registry's limits.
 *
 * Source: market facts B2; docs/decisions/0091-range-engine.md.
 */
import { Effect, Stream } from "effect"
import { makeFlights, type Waiter } from "#actors/carrier-search/flights.ts"
import { type Health, makeGate } from "#actors/carrier-search/gate.ts"
import type { Lookup } from "#actors/carrier-search/lookup.ts"
import { makeLookupCache } from "#actors/carrier-search/lookup-cache.ts"
import type { PaceOptions } from "#actors/carrier-search/pace.ts"
import { scanRange } from "#actors/carrier-search/range-scan.ts"
import type { Piece, SearchFailed } from "#actors/carrier-search/registry.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import type { Format } from "#schemas/carrier-search/format.ts"

export interface EngineOptions extends PaceOptions {
  readonly lookup: Lookup
  /** Maximum number of attempts per number. */
  readonly tries: number
  /** Retries per search, in percent of its numbers. */
  readonly retry_percent: number
  /** How long results are cached; 0: only while running searches need them. */
  readonly cache_seconds: number
}

export interface Engine {
  readonly search: (range: Range, format: Format) => Stream.Stream<Piece, SearchFailed>
  readonly health: Effect.Effect<Health>
}

/** Minimum number of retries per search, however short it is. */
const retries_min = 20
/** Numbers in progress per concurrent lookup: some of them wait for a retry. */
const numbers_per_lookup = 2

/** Lookups end with the scope. */
export const makeEngine = Effect.fnUntraced(function* (options: EngineOptions) {
  const cache = makeLookupCache(options.cache_seconds)
  const gate = makeGate(options)
  const { tries } = options
  const flights = yield* makeFlights({ lookup: gate.lookup, cache, tries })

  const search: Engine["search"] = (range, format) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const retries = Math.ceil((total(range) * options.retry_percent) / 100)
        const waiter: Waiter = {
          search: yield* Effect.acquireRelease(Effect.sync(cache.beginSearch), () =>
            Effect.sync(cache.endSearch),
          ),
          retries: Math.max(retries_min, retries),
        }
        const lookUp: Lookup = (mc) => flights.lookUp(mc, waiter)
        return scanRange({
          range,
          format,
          lookUp,
          concurrency: numbers_per_lookup * options.concurrency,
        })
      }),
    )
  return { search, health: gate.health } satisfies Engine
})
