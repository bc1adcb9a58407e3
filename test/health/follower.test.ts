import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Log } from "#events/log.ts"
import { lagSeconds, standstill } from "#projections/health/follower.ts"

/** A log with one commit per second. */
const log = (head: number) =>
  ({
    head: () => Effect.succeed(head),
    read: (_: string, after: number) =>
      Stream.range(after + 1, head).pipe(
        Stream.map((position) => ({
          position,
          commit: { at: new Date(position * 1000).toISOString() },
        })),
      ),
    // The follower only reads the log's head and its timestamps.
  }) as never

const stands = (position: Effect.Effect<number | undefined>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(
      standstill({ part: "", position, waits: () => "the table is locked" }).pipe(
        Effect.provideService(Log, log(20)),
      ),
    )
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

describe("a follower of the log", () => {
  it.effect("is late by the age of the oldest commit that it has not processed", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(100_000)
      const lag = (position: number) =>
        Effect.provideService(lagSeconds("", position), Log, log(20))
      assert.equal(yield* lag(20), 0)
      assert.equal(yield* lag(19), 80)
      assert.equal(yield* lag(4), 95)
    }),
  )

  it.effect("is stuck if it is late and does not move, and reports the reason", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(25_000)
      assert.isUndefined(yield* stands(Effect.succeed(20)), "it has processed all")
      assert.isUndefined(yield* stands(Effect.succeed(18)), "it is 7 s late")
      assert.isUndefined(yield* stands(Effect.undefined), "another process does it")
      let position = 1
      assert.isUndefined(yield* stands(Effect.sync(() => position++)), "it moves")
      const why = yield* stands(Effect.succeed(4))
      assert.match(why ?? "", /^\d+ s behind the log at position 4: the table is locked$/)
    }),
  )
})
