/** A real PostgreSQL server for tests: one for a test file, and one database per test. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { type PostgresOptions, postgres } from "#postgres"
import type { Databases } from "#projections/database.ts"
import { programs, startServer } from "../../../bench/harness/postgres-server.ts"
import { trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "./absent.ts"
import { temporaryFolder } from "./nats.ts"

/** No data outlives a test, so nothing is synced to disk. */
const flags = ["fsync=off", "full_page_writes=off", "max_connections=100"]

export interface TestPostgres {
  /** The URL of a new database. */
  readonly database: Effect.Effect<string>
  /** Kills the server at once; `start` makes it recover. */
  readonly kill: Effect.Effect<void>
  readonly start: Effect.Effect<void>
}

/** A collation that differs from the byte order, as an operator's own database may have. */
const english = "template template0 locale_provider icu icu_locale 'en' locale 'C.UTF-8'"

/** Runs one query of a test. */
export const ask = (connection: string, text: string) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: connection })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  })

/** Access rules: the server's owner, and others with a password. */
const admission = "local all postgres trust\nlocal all all scram-sha-256\n"

const running = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const hba = join(folder, "admission.conf")
  writeFileSync(hba, admission)
  const stops: Array<() => Promise<void>> = []
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => void (await Promise.all(stops.map((stop) => stop())))),
  )
  const server = yield* Effect.promise(() =>
    startServer(folder, (stop) => stops.push(stop), [...flags, `hba_file=${hba}`]),
  )
  const at = (name: string) => `postgresql://postgres@${encodeURIComponent(server.socket)}/${name}`
  let made = 0
  return {
    database: Effect.gen(function* () {
      const name = `test_${++made}`
      yield* ask(at("postgres"), `create database ${name} ${english}`)
      return at(name)
    }),
    kill: Effect.promise(server.kill),
    start: Effect.promise(server.start),
  }
})

/** The server that the tests of a file share. */
export class Postgres extends Context.Service<Postgres, TestPostgres>()("test/Postgres") {
  static readonly layer = Layer.effect(Postgres, running)
}

export const optionsOf = (connection: string, is_writer = true): PostgresOptions => ({
  connection,
  is_writer,
  password: Redacted.make(""),
  statement_timeout_seconds: 30,
  lock_timeout_seconds: 20,
})

/** Read models in a new database of the file's server. */
export const postgresDatabases: Layer.Layer<Databases, never, Postgres> = Layer.unwrap(
  Effect.gen(function* () {
    const { database } = yield* Postgres
    return postgres(optionsOf(yield* database))
  }),
)

/** A `describe` for tests that need PostgreSQL: without it they are skipped with one line. */
export const describePostgres = (name: string, define: () => void) => {
  if (programs() !== undefined) return describe(name, define)
  const why = `PostgreSQL is not installed (${trees.postgresql.install_command})`
  describeAbsent(name, "PostgreSQL", why)
}
