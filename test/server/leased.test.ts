import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { host } from "#actors/host.ts"
import { leasesMemory } from "#adapters/leases/memory.ts"
import { logMemory } from "#journal"
import { lease_ttl_ms, withLease } from "#server/lease.ts"

const ground = Layer.mergeAll(
  host.pipe(Layer.provide(logMemory)),
  leasesMemory({ holder: "one", ttl_ms: lease_ttl_ms }),
)

describe("work under a lease", () => {
  for (const [what, end] of [
    ["that fails", Effect.fail("no bus")],
    ["that has a defect", Effect.die(new Error("unthought of"))],
  ] as const) {
    it.effect(`${what} begins again`, () =>
      Effect.gen(function* () {
        const ended = yield* Deferred.make<void>()
        const again = yield* Deferred.make<number>()
        const fences: Array<number> = []
        yield* withLease("test-work", "one", (fence) =>
          Effect.suspend(() => {
            fences.push(fence)
            return fences.length === 1
              ? Effect.andThen(Deferred.succeed(ended, undefined), end)
              : Effect.andThen(Deferred.succeed(again, fence), Effect.never)
          }),
        )
        yield* Deferred.await(ended)
        yield* TestClock.adjust("2 seconds")
        expect(yield* Deferred.await(again)).toBeGreaterThan(fences[0] ?? 0)
      }).pipe(Effect.scoped, Effect.provide(ground)),
    )
  }
})
