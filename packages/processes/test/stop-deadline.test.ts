import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { newStopDeadline, StopDeadline } from "../stop-deadline.ts"

const hour_ms = 3_600_000

describe("the deadline of a shutdown", () => {
  it.effect("leaves each part its own limit without a shutdown", () =>
    Effect.gen(function* () {
      for (const { work, part, rest } of [newStopDeadline(), yield* StopDeadline]) {
        yield* TestClock.adjust(hour_ms)
        for (const wait of [work, part, rest]) assert.strictEqual(yield* wait(3_000), 3_000)
      }
    }),
  )

  it.effect("ends all parts in time, however many hang in a row", () =>
    Effect.gen(function* () {
      const { begin, work, part, rest } = newStopDeadline()
      yield* TestClock.adjust(hour_ms)
      yield* begin
      for (const [wait, ms] of [
        [work, 8_000],
        [work, 8_000],
        [part, 5_000],
        [part, 3_000],
        [part, 3_000],
        [rest, 5_000],
      ] as const) {
        const wait_ms = yield* wait(ms)
        assert.isAtMost(wait_ms, ms)
        yield* TestClock.adjust(wait_ms)
      }
      assert.strictEqual(yield* part(5_000), 0)
      assert.strictEqual(yield* rest(5_000), 0)
    }),
  )

  it.effect("leaves the last part what the others did not need, and time to each of them", () =>
    Effect.gen(function* () {
      const { begin, part, rest } = newStopDeadline()
      yield* begin
      yield* TestClock.adjust(8_000)
      assert.strictEqual(yield* part(5_000), 750)
      assert.strictEqual(yield* rest(5_000), 1_500)
    }),
  )

  it.effect("restarts after the load balancer's delay", () =>
    Effect.gen(function* () {
      const { begin, work } = newStopDeadline()
      yield* begin
      yield* TestClock.adjust(hour_ms)
      assert.strictEqual(yield* work(8_000), 0)
      yield* begin
      assert.strictEqual(yield* work(8_000), 8_000)
    }),
  )
})
