/** Runs long queries in a thread, so that the event loop stays free. */
import { Effect } from "effect"
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely"
import { threadCall } from "#threads"
import type { FileRead, ReadQuery, Rows } from "./reader-thread.ts"

export interface Reader {
  /** A read-only dialect. `file` is called for each query. */
  readonly dialect: (file: () => FileRead) => Dialect
}

const program = new URL("./reader-thread.ts", import.meta.url)

/** The thread starts with the first query and stops with the scope. */
export const reader = Effect.gen(function* () {
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() => threadCall<ReadQuery, Rows>({ name: "The query thread", program })),
    ({ end }) => Effect.promise(end),
  )
  const connection = (file: () => FileRead): DatabaseConnection => ({
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const { path, inode } = file()
      // The rows have the shape that Kysely derived from the same query.
      return { rows: (await thread.request({ path, inode, sql, parameters })) as Array<Row> }
    },
    streamQuery: () => {
      throw new Error("The reader does not support streaming.")
    },
  })
  const rejectWrite = () => Promise.reject(new Error("The reader is read-only."))

  const result: Reader = {
    dialect: (file) => ({
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => ({
        init: () => Promise.resolve(),
        acquireConnection: () => Promise.resolve(connection(file)),
        releaseConnection: () => Promise.resolve(),
        beginTransaction: rejectWrite,
        commitTransaction: rejectWrite,
        rollbackTransaction: rejectWrite,
        destroy: () => Promise.resolve(),
      }),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    }),
  }
  return result
})
