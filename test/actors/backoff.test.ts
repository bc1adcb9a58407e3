import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { newBackoff } from "#actors/backoff.ts"

describe("a backoff", () => {
  it.effect("doubles the pause, up to ten seconds", () =>
    Effect.gen(function* () {
      const backoff = newBackoff()
      const all = yield* Effect.forEach(Array.from({ length: 7 }), () => backoff)
      const pauses = all.map(({ pause_ms }) => pause_ms)
      assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    }),
  )

  it.effect("logs failures 1, 2, 4 and 8, with their count", () =>
    Effect.gen(function* () {
      const backoff = newBackoff()
      const all = yield* Effect.forEach(Array.from({ length: 9 }), () => backoff)
      const logged = all.filter(({ is_logged }) => is_logged).map(({ times }) => times)
      assert.deepEqual(logged, ["", ...[2, 4, 8].map((count) => ` (${count} times in a row)`)])
    }),
  )

  it.effect("starts over after a minute without a failure", () =>
    Effect.gen(function* () {
      const backoff = newBackoff()
      yield* backoff
      yield* TestClock.adjust("59 seconds")
      assert.equal((yield* backoff).pause_ms, 1000)
      yield* TestClock.adjust("60 seconds")
      assert.deepEqual(yield* backoff, { is_logged: true, times: "", pause_ms: 500 })
    }),
  )
})
