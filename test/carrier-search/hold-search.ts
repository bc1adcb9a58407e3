/**
 * A process that searches a million numbers, one in a hundred a carrier, and reports its memory.
 */
import { Effect, Stream } from "effect"
import { makeEngine } from "#actors/carrier-search/engine.ts"
import { peakMemory } from "../world/peak-memory.ts"

const mb = 1024 * 1024
const warm_up = 100_000

const found = (mc: number) => (mc % 100 === 0 ? [{ dot: mc, name: `CARRIER ${mc} LLC` }] : [])

const program = Effect.gen(function* () {
  const engine = yield* makeEngine({
    lookup: (mc) => Effect.succeed(found(mc)),
    concurrency: 8,
    rate_per_second: 0,
    tries: 4,
    retry_percent: 10,
    cache_seconds: 0,
  })
  const search = (end: number) =>
    Stream.runFold(
      engine.search({ start: 1, end }, "json"),
      () => ({ done: 0, found: 0, bytes: 0 }),
      (sum, piece) => ({ ...piece, bytes: sum.bytes + piece.rows.length }),
    )
  // V8's young generation grows with any work, so measure idle memory after some of it.
  yield* search(warm_up)
  const idle = process.memoryUsage().rss
  const { done, found: carriers, bytes } = yield* search(1_000_000)
  const above_mb = (peakMemory() - idle) / mb
  console.log(JSON.stringify({ done, found: carriers, bytes, above_mb }))
})
await Effect.runPromise(Effect.scoped(program))
