/** The cache of verified tokens: which tokens it keeps, and which it evicts. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { knownTokens } from "#adapters/identity/known-token.ts"
import type { Caller } from "#gateway/caller.ts"

const caller: Caller = { actor: "jwt:a", kind: "jwt", scopes: new Set(), roles: new Set() }

describe("tokens that are known", () => {
  it.effect("are not crowded out by those that are good no longer, which are not kept", () =>
    Effect.gen(function* () {
      const known = knownTokens(yield* Clock.Clock, 60_000)
      known.add("good", caller, 0, 60_000)
      for (let n = 0; n < 10_000; n++) known.add(`ended ${n}`, caller, 0, 0)
      assert.strictEqual(known.find("good"), caller)
      assert.isUndefined(known.find("ended 0"))
    }),
  )

  it.effect("are ten thousand at most, and the oldest goes", () =>
    Effect.gen(function* () {
      const known = knownTokens(yield* Clock.Clock, 60_000)
      for (let n = 0; n <= 10_000; n++) known.add(`good ${n}`, caller, 0, 60_000)
      assert.isUndefined(known.find("good 0"))
      assert.strictEqual(known.find("good 1"), caller)
      assert.strictEqual(known.find("good 10000"), caller)
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(known.find("good 10000"))
    }),
  )
})
