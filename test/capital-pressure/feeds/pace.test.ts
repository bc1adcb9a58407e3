import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makePace } from "#adapters/capital-pressure/feeds/pace.ts"

describe("the pace", () => {
  it.effect("of one host is two at once, and each so much later than the one before", () =>
    Effect.gen(function* () {
      const pace = makePace()
      const began: Array<number> = []
      let running = 0
      let most = 0
      const one = Effect.gen(function* () {
        began.push(yield* Clock.currentTimeMillis)
        running += 1
        most = Math.max(most, running)
        yield* Effect.sleep(1000)
        running -= 1
      })
      const all = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3, 4], () => pace.run("a", 300, one), { concurrency: 4 }),
      )
      yield* TestClock.adjust(10_000)
      yield* Fiber.join(all)
      assert.deepEqual(began, [0, 300, 1000, 1300])
      assert.equal(most, 2)
    }),
  )

  it.effect("of one host is not that of another", () =>
    Effect.gen(function* () {
      const pace = makePace()
      const hosts = ["a", "b", "c", "d"]
      const times = yield* Effect.forEach(hosts, (host) =>
        pace.run(host, 60_000, Clock.currentTimeMillis),
      )
      assert.deepEqual(times, [0, 0, 0, 0])
      yield* pace.pause("a", 5000)
      yield* pace.pause("a", 1000)
      assert.deepEqual(yield* Effect.forEach(hosts, pace.pauseOf), [5000, 0, 0, 0])
      yield* TestClock.adjust(5000)
      assert.equal(yield* pace.pauseOf("a"), 0)
    }),
  )
})
