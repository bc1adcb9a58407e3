/** Read models of counters in PostgreSQL, as processes open them. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { host } from "#actors/host.ts"
import { logMemory } from "#journal"
import { postgres } from "#postgres"
import type { Database } from "#projections/database.ts"
import { openDatabase, readModel } from "#projections/read-model.ts"
import { optionsOf, Postgres } from "../world/programs/postgres.ts"
import { blueprint, type Tables } from "./counters.ts"

/** The schema with their tables. */
export const schema = "almanac_test_v1"

const inDatabase = <A, E, R>(url: string, body: Effect.Effect<A, E, R>, is_writer = true) =>
  Effect.flatMap(Layer.build(postgres(optionsOf(url, is_writer))), (around) =>
    Effect.provideContext(body, around),
  )

/** A read model as a process opens it, as a writer or reader. */
export const model = (url: string, is_writer = true, of = blueprint) =>
  inDatabase(url, readModel(of), is_writer)

/** Only its database, which nothing fills. */
export const opened = (url: string) => inDatabase(url, openDatabase(blueprint))

export const totals = (db: Database<Tables>["db"]) =>
  Effect.promise(async () => {
    const rows = await db.selectFrom("counter").selectAll().orderBy("id").execute()
    return rows.reduce((sum, { total }) => sum + total, 0)
  })

/** The URL of a new database. */
export const database = Effect.flatMap(Postgres, (server) => server.database)

/** Waits until a condition holds; fails after ten seconds. */
export const until = Effect.fnUntraced(function* (what: string, is: Effect.Effect<boolean>) {
  for (let looks = 0; !(yield* is); looks++) {
    if (looks > 1000) assert.fail(`${what} never came`)
    yield* Effect.sleep(10)
  }
})

export const withLog = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.scoped(body).pipe(Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))))
