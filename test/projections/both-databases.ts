/** Runs one read model in SQLite and in PostgreSQL with the same events and the same queries. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Kysely } from "kysely"
import type { Entry } from "#events/log.ts"
import { type Blueprint, openDatabase, project } from "#projections/read-model.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../world/programs/nats.ts"
import { postgresDatabases } from "../world/programs/postgres.ts"

export const both = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>) {
  const here = yield* Layer.build(sqlite(yield* temporaryFolder))
  const there = yield* Layer.build(postgresDatabases)
  const one = yield* Effect.provideContext(openDatabase(blueprint), here)
  const other = yield* Effect.provideContext(openDatabase(blueprint), there)
  return {
    tell: (stretch: ReadonlyArray<Entry>) =>
      Effect.all([project(one, blueprint, stretch), project(other, blueprint, stretch)], {
        discard: true,
      }),
    /** Asserts that all rows of all tables are equal; returns their number. */
    agree: Effect.gen(function* () {
      const expected = yield* one.dump
      assert.deepEqual(yield* other.dump, expected)
      return Object.values(expected).flat().length
    }),
    /** A query's result, which must be the same in both. */
    answer: <A>(what: string, query: (db: Kysely<Tables>) => Effect.Effect<A>) =>
      Effect.gen(function* () {
        const expected = yield* query(one.reader)
        assert.deepEqual(yield* query(other.reader), expected, what)
        return expected
      }),
  }
})
