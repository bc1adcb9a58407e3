import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { waitForPart } from "#projections/wait-for-part.ts"
import { makeWaiters } from "#projections/waiters.ts"
import { a, c, write } from "../contract/log-commits.ts"

/** A model of one part of the log whose position tests set; records its waiters. */
const model = Effect.gen(function* () {
  const at = { position: 0 }
  const { wake, waitFor } = yield* makeWaiters("The test's read model", () => at.position)
  const positions: Array<number> = []
  const show = waitForPart(
    yield* Log,
    { position: Effect.sync(() => at.position), waitFor },
    "test.one",
  )
  const wait = (position: number) =>
    show(position).pipe(
      Effect.tap(() => Effect.sync(() => positions.push(position))),
      Effect.forkChild({ startImmediately: true }),
    )
  const reach = (position: number) => {
    at.position = position
    wake()
  }
  return { positions, wait, reach }
})

const settled = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow)

describe("a read model of one part of the log", () => {
  it.effect("reaches a position of another part once its own part is complete up to it", () =>
    Effect.gen(function* () {
      const own = yield* write(a, "own")
      const other = yield* write(c, "other")
      const { positions, wait, reach } = yield* model
      yield* wait(other)
      yield* settled
      assert.deepEqual(positions, [])
      reach(own)
      yield* settled
      assert.deepEqual(positions, [other])
    }).pipe(Effect.scoped, Effect.provide(logMemory)),
  )

  it.effect("reaches a position of its own part only when it shows that position", () =>
    Effect.gen(function* () {
      const first = yield* write(a, "first")
      const second = yield* write(a, "second")
      const { positions, wait, reach } = yield* model
      yield* wait(second)
      reach(first)
      yield* settled
      assert.deepEqual(positions, [])
      reach(second)
      yield* settled
      assert.deepEqual(positions, [second])
    }).pipe(Effect.scoped, Effect.provide(logMemory)),
  )
})
