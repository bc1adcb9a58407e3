import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { availabilityOf, offline_ms } from "#bus"

/** A link that disconnects and reconnects on demand. */
const newLink = () => {
  const listeners = new Set<() => void>()
  let up = true
  const become = (is_up: boolean) => {
    up = is_up
    for (const listener of listeners) listener()
  }
  const link = {
    isUp: () => up,
    isClosed: () => false,
    onChange: (listener: () => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return { link, become, count: () => listeners.size }
}

describe("the bus", () => {
  it.effect("is away once its connection was lost for seconds, and at once no more", () =>
    Effect.gen(function* () {
      const { link, become } = newLink()
      const { problem } = yield* availabilityOf(link)
      assert.isUndefined(yield* problem)
      become(false)
      yield* TestClock.adjust(offline_ms - 1)
      assert.isUndefined(yield* problem)
      // Each failed attempt is reported as another disconnect.
      become(false)
      yield* TestClock.adjust(1)
      assert.equal(yield* problem, "has no connection to the bus")
      become(true)
      assert.isUndefined(yield* problem)
    }),
  )

  it.effect("is not away while it comes back each time", () =>
    Effect.gen(function* () {
      const { link, become } = newLink()
      const { problem } = yield* availabilityOf(link)
      for (let times = 0; times < 10; times++) {
        become(false)
        yield* TestClock.adjust(offline_ms - 1)
        assert.isUndefined(yield* problem)
        become(true)
      }
    }),
  )

  it.effect("is watched no longer than the scope", () =>
    Effect.gen(function* () {
      const { link, count } = newLink()
      yield* Effect.scoped(availabilityOf(link))
      assert.equal(count(), 0)
    }),
  )
})
