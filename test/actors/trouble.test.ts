import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { newTrouble } from "#actors/trouble.ts"

describe("trouble", () => {
  it.effect("doubles the pause, up to ten seconds", () =>
    Effect.gen(function* () {
      const trouble = newTrouble()
      const all = yield* Effect.forEach(Array.from({ length: 7 }), () => trouble)
      const pauses = all.map(({ pause_ms }) => pause_ms)
      assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    }),
  )

  it.effect("is told the first, the second, the fourth time, and how often", () =>
    Effect.gen(function* () {
      const trouble = newTrouble()
      const all = yield* Effect.forEach(Array.from({ length: 9 }), () => trouble)
      const told = all.filter(({ is_told }) => is_told).map(({ times }) => times)
      assert.deepEqual(told, ["", ...[2, 4, 8].map((count) => ` (${count} times in a row)`)])
    }),
  )

  it.effect("is another one after a minute without it", () =>
    Effect.gen(function* () {
      const trouble = newTrouble()
      yield* trouble
      yield* TestClock.adjust("59 seconds")
      assert.equal((yield* trouble).pause_ms, 1000)
      yield* TestClock.adjust("60 seconds")
      assert.deepEqual(yield* trouble, { is_told: true, times: "", pause_ms: 500 })
    }),
  )
})
