/** Kysely over a bounded pool of sessions that only read. */
import { Effect, type Scope } from "effect"
import {
  type DatabaseConnection,
  type Dialect,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from "kysely"
import pg from "pg"
import { StopDeadline } from "#processes"
import { readFailureOf } from "./failure.ts"
import { type PostgresServer, sessionOf } from "./server.ts"
import { held, naming } from "./statement.ts"

/** Milliseconds after which a session that nobody uses ends. */
const idle_ms_max = 30_000

/** How long its end waits for what is being read, in milliseconds. */
const end_ms_max = 2_000

const read_only = ["default_transaction_read_only=on"]

const refuse = () => Promise.reject(new Error("The reader only reads."))

const dialectOf = (pool: pg.Pool): Dialect => {
  const nameOf = naming()
  const connection: DatabaseConnection = {
    executeQuery: async <Row>({
      sql: text,
      parameters,
    }: {
      readonly sql: string
      readonly parameters: ReadonlyArray<unknown>
    }): Promise<QueryResult<Row>> => {
      try {
        const { rows } = await pool.query({
          name: nameOf(text),
          text,
          values: parameters.map(held),
        })
        // The rows have the shape that Kysely derived from the same query.
        return { rows: rows as Array<Row> }
      } catch (cause) {
        throw readFailureOf(cause)
      }
    },
    streamQuery: () => {
      throw new Error("The reader answers whole results.")
    },
  }
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      init: () => Promise.resolve(),
      acquireConnection: () => Promise.resolve(connection),
      releaseConnection: () => Promise.resolve(),
      beginTransaction: refuse,
      commitTransaction: refuse,
      rollbackTransaction: refuse,
      destroy: () => Promise.resolve(),
    }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

/** Reads the tables of a schema, whichever has its name when it is asked; ends with the scope. */
export const postgresReader = <Tables>(
  server: PostgresServer,
  schema: string,
  sessions_max: number,
): Effect.Effect<Kysely<Tables>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const pool = new pg.Pool({
          ...sessionOf(server, schema, read_only, server.statement_timeout_seconds),
          max: sessions_max,
          idleTimeoutMillis: idle_ms_max,
          allowExitOnIdle: true,
        })
        // An idle session that ended leaves the pool: the next query finds out what is so.
        pool.on("error", () => {})
        return pool
      }),
      Effect.fnUntraced(function* (pool) {
        const wait_ms = yield* (yield* StopDeadline).part(end_ms_max)
        yield* Effect.promise(() => pool.end()).pipe(Effect.timeoutOption(wait_ms))
      }),
    ),
    (pool) => new Kysely<Tables>({ dialect: dialectOf(pool) }),
  )
