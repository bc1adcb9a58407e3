import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { makeWaiters } from "#projections/waiters.ts"

/** A position that tests set, and the names of finished waiters in order. */
const place = Effect.gen(function* () {
  const at = { position: 0 }
  const gone: Array<string> = []
  const { wake, waitFor } = yield* makeWaiters("The test's read model", () => at.position)
  const wait = (name: string, position: number) =>
    waitFor(position).pipe(
      Effect.tap(() => Effect.sync(() => gone.push(name))),
      Effect.forkChild({ startImmediately: true }),
    )
  const reach = (position: number) => {
    at.position = position
    wake()
  }
  return { gone, wait, reach }
})

describe("waiters for a position", () => {
  it.effect("goes on at once when it is reached already", () =>
    Effect.gen(function* () {
      const { gone, wait, reach } = yield* place
      reach(3)
      yield* wait("three", 3)
      assert.deepEqual(gone, ["three"])
    }),
  )

  it.effect("goes on when it is reached or passed, and not before", () =>
    Effect.gen(function* () {
      const { gone, wait, reach } = yield* place
      yield* wait("seven", 7)
      yield* wait("five", 5)
      yield* wait("five too", 5)
      reach(4)
      assert.deepEqual(gone, [])
      reach(5)
      assert.deepEqual(gone, ["five", "five too"])
      reach(9)
      assert.deepEqual(gone, ["five", "five too", "seven"])
    }),
  )

  it.effect("fail after 2 to 2.5 seconds", () =>
    Effect.gen(function* () {
      const { gone, wait, reach } = yield* place
      yield* TestClock.adjust("249 millis")
      const late = yield* wait("late", 2)
      yield* TestClock.adjust("500 millis")
      const later = yield* wait("later", 1)
      yield* TestClock.adjust("1499 millis")
      assert.isUndefined(late.pollUnsafe())
      yield* TestClock.adjust("251 millis")
      const { detail } = yield* Effect.flip(Fiber.join(late))
      assert.equal(detail, "The test's read model has not reached position 2.")
      assert.isUndefined(later.pollUnsafe())
      reach(2)
      assert.deepEqual(gone, ["later"])
    }),
  )

  it.effect("waits no longer when the read model is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { wait } = yield* Scope.provide(place, scope)
      const waiter = yield* wait("left", 1)
      yield* Scope.close(scope, Exit.void)
      assert.equal((yield* Effect.flip(Fiber.join(waiter)))._tag, "Behind")
    }),
  )
})
