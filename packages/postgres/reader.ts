/** Kysely over a bounded pool of read-only sessions. */
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
import { statementNames, storedValue } from "./statement.ts"

/** Milliseconds after which an idle session is closed. */
const idle_ms_max = 30_000

/** How long shutdown waits for running queries, in milliseconds. */
const end_ms_max = 2_000

const read_only = ["default_transaction_read_only=on"]

const rejectWrite = () => Promise.reject(new Error("The reader is read-only."))

const dialectOf = (pool: pg.Pool): Dialect => {
  const nameOf = statementNames()
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
          values: parameters.map(storedValue),
        })
        // The rows have the shape that Kysely derived from the same query.
        return { rows: rows as Array<Row> }
      } catch (cause) {
        throw readFailureOf(cause)
      }
    },
    streamQuery: () => {
      throw new Error("The reader does not support streaming.")
    },
  }
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      init: () => Promise.resolve(),
      acquireConnection: () => Promise.resolve(connection),
      releaseConnection: () => Promise.resolve(),
      beginTransaction: rejectWrite,
      commitTransaction: rejectWrite,
      rollbackTransaction: rejectWrite,
      destroy: () => Promise.resolve(),
    }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

/** Reads the schema that has this name at the time of the query. Closes with the scope. */
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
        // The pool drops a lost idle session; the next query reports the cause.
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
