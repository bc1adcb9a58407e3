import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { away_ms, standingOf } from "#bus"

/** A link that is lost and comes back when a test says so. */
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
      const { trouble } = yield* standingOf(link)
      assert.isUndefined(yield* trouble)
      become(false)
      yield* TestClock.adjust(away_ms - 1)
      assert.isUndefined(yield* trouble)
      // Each attempt that fails is told of as another loss.
      become(false)
      yield* TestClock.adjust(1)
      assert.equal(yield* trouble, "has no connection to the bus")
      become(true)
      assert.isUndefined(yield* trouble)
    }),
  )

  it.effect("is not away while it comes back each time", () =>
    Effect.gen(function* () {
      const { link, become } = newLink()
      const { trouble } = yield* standingOf(link)
      for (let times = 0; times < 10; times++) {
        become(false)
        yield* TestClock.adjust(away_ms - 1)
        assert.isUndefined(yield* trouble)
        become(true)
      }
    }),
  )

  it.effect("is watched no longer than the scope", () =>
    Effect.gen(function* () {
      const { link, count } = newLink()
      yield* Effect.scoped(standingOf(link))
      assert.equal(count(), 0)
    }),
  )
})
