/** Contract of every spool. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Spool } from "#actors/spool.ts"
import type { SearchFact } from "#schemas/carrier-search/search.ts"
import { searchFact } from "../world/spooled.ts"

type Promised = (spool: Spool<SearchFact>) => Effect.Effect<void, unknown>

const addAll = (spool: Spool<SearchFact>, ...numbers: ReadonlyArray<number>) =>
  Effect.forEach(numbers, (n) => spool.add(searchFact(n)), { discard: true })

const all = (spool: Spool<SearchFact>, after = 0) => spool.scan(after, 1_000)

/** The tests, by title. */
export const promises: Readonly<Record<string, Promised>> = {
  "holds nothing at first": Effect.fnUntraced(function* (spool) {
    assert.deepEqual(yield* all(spool), [])
    assert.match(spool.epoch, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  }),

  "returns a fact as it was added, at once": Effect.fnUntraced(function* (spool) {
    const failed = {
      ...searchFact(1),
      outcome: "failed" as const,
      reason: "Überlauf, 漢字, \u2028",
    }
    yield* spool.add(failed)
    assert.deepEqual(
      (yield* all(spool)).map(({ fact }) => fact),
      [failed],
    )
  }),

  "keeps the order in which facts were added, under cursors that rise": Effect.fnUntraced(
    function* (spool) {
      yield* addAll(spool, 5, 3, 9, 1)
      const spooled = yield* all(spool)
      assert.deepEqual(
        spooled.map(({ fact }) => fact.start),
        [5, 3, 9, 1],
      )
      assert.isAbove(spooled[0]?.cursor ?? 0, 0)
      for (const [i, { cursor }] of spooled.slice(1).entries()) {
        assert.isAbove(cursor, spooled[i]?.cursor ?? Infinity)
      }
    },
  ),

  "keeps facts that are alike apart": Effect.fnUntraced(function* (spool) {
    yield* addAll(spool, 1, 1, 1)
    assert.lengthOf(yield* all(spool), 3)
  }),

  "returns facts after a cursor, up to the limit": Effect.fnUntraced(function* (spool) {
    yield* addAll(spool, 1, 2, 3, 4)
    const [, second] = yield* all(spool)
    assert.deepEqual(
      (yield* spool.scan(second?.cursor ?? 0, 1)).map(({ fact }) => fact.start),
      [3],
    )
    assert.deepEqual(
      (yield* spool.scan(0, 3)).map(({ fact }) => fact.start),
      [1, 2, 3],
    )
  }),

  "forgets what is acknowledged, and nothing else": Effect.fnUntraced(function* (spool) {
    yield* addAll(spool, 1, 2, 3)
    const [, second] = yield* all(spool)
    yield* spool.acknowledge(second?.cursor ?? 0)
    yield* spool.acknowledge(second?.cursor ?? 0)
    assert.deepEqual(
      (yield* all(spool)).map(({ fact }) => fact.start),
      [3],
    )
  }),

  "uses no cursor again after all was forgotten": Effect.fnUntraced(function* (spool) {
    yield* addAll(spool, 1, 2)
    const last = (yield* all(spool)).at(-1)?.cursor ?? 0
    yield* spool.acknowledge(last)
    yield* addAll(spool, 3)
    assert.isAbove((yield* all(spool))[0]?.cursor ?? 0, last)
  }),

  "drops what is too much for it, and goes on when there is room": Effect.fnUntraced(
    function* (spool) {
      for (let n = 1; n <= 10_050; n++) yield* spool.add(searchFact(n))
      const [first] = yield* spool.scan(0, 1)
      assert.equal(first?.fact.start, 1)
      const held = yield* spool.scan(0, 20_000)
      assert.isAtMost(held.length, 10_050)
      assert.isAtLeast(held.length, 10_000)
      yield* spool.acknowledge(held.at(-1)?.cursor ?? 0)
      yield* addAll(spool, 7)
      assert.deepEqual(
        (yield* all(spool)).map(({ fact }) => fact.start),
        [7],
      )
    },
  ),
}
