/** An in-process registry on the test clock that counts the engine's requests. */
import { Clock, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type EngineOptions, makeEngine } from "#actors/carrier-search/engine.ts"
import { type FoundCarrier, LookupFailed } from "#actors/carrier-search/lookup.ts"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { textOf } from "../contract/registry.ts"
import { newCounts } from "./registry-fake.ts"

export interface Script {
  readonly found?: (mc: number) => ReadonlyArray<FoundCarrier>
  /** A failure to return for the nth request for a number, from 1. */
  readonly instead?: (mc: number, nth: number) => LookupFailed | undefined
  readonly latency_ms?: (mc: number, nth: number) => number
  /** Maximum concurrent requests; above it the registry is busy. */
  readonly shed_above?: number
}

export const even = (mc: number): ReadonlyArray<FoundCarrier> =>
  mc % 2 === 0 ? [{ dot: mc, name: `C${mc}` }] : []

export const fault = (kind: LookupFailed["kind"], after_ms?: number) =>
  new LookupFailed({ kind, reason: `it is ${kind}`, ...(after_ms !== undefined && { after_ms }) })

const defaults = {
  concurrency: 4,
  rate_per_second: 0,
  tries: 4,
  retry_percent: 10,
  cache_seconds: 0,
}

/** An engine over the script, for the life of the scope. */
export const engineOver = Effect.fnUntraced(function* (
  script: Script,
  options: Partial<EngineOptions> = {},
) {
  const counts = newCounts()
  const requests = new Map<number, number>()
  /** Start of each request, in milliseconds. */
  const began: Array<number> = []
  const it = { script }

  const answer = Effect.fnUntraced(function* (mc: number) {
    const { found = even, instead, latency_ms, shed_above = Number.POSITIVE_INFINITY } = it.script
    const nth = (requests.get(mc) ?? 0) + 1
    requests.set(mc, nth)
    began.push(yield* Clock.currentTimeMillis)
    counts.total += 1
    counts.in_flight += 1
    counts.in_flight_max = Math.max(counts.in_flight_max, counts.in_flight)
    const is_shed = counts.in_flight > shed_above
    const ms = is_shed ? 1 : (latency_ms?.(mc, nth) ?? 0)
    if (ms > 0) yield* Effect.sleep(ms)
    if (is_shed) counts.shed += 1
    const failure = is_shed ? fault("busy") : instead?.(mc, nth)
    return failure ? yield* failure : found(mc)
  })
  const lookup = (mc: number) =>
    answer(mc).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          counts.aborted += 1
        }),
      ),
      Effect.ensuring(
        Effect.sync(() => {
          counts.in_flight -= 1
        }),
      ),
    )
  const engine = yield* makeEngine({ ...defaults, ...options, lookup })
  const search = (range: Range) =>
    Effect.map(Stream.runCollect(engine.search(range, "csv")), textOf)
  return Object.assign(it, {
    ...engine,
    run: search,
    stream: engine.search,
    counts,
    requests,
    began,
  })
})

const step_ms = 10
const steps_max = 100_000

/** Runs the effect while the test clock advances; returns its exit. */
export const lived = Effect.fnUntraced(function* <A, E, R>(body: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(body)
  for (let step = 0; step < steps_max && fiber.pollUnsafe() === undefined; step += 1) {
    yield* TestClock.adjust(step_ms)
  }
  return yield* Fiber.join(fiber)
})
