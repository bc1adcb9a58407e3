/** A thread that runs long queries, so that this one stays free. */
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
import type { FileRead, Question, Rows } from "./reader-thread.ts"

export interface Reader {
  /** Kysely over what `file` is at the time of the query. It only reads. */
  readonly dialect: (file: () => FileRead) => Dialect
}

const program = new URL("./reader-thread.ts", import.meta.url)

/** Starts the thread at the first query, and ends it with the scope. */
export const reader = Effect.gen(function* () {
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() => threadCall<Question, Rows>({ name: "The querying thread", program })),
    ({ end }) => Effect.promise(end),
  )
  const connection = (file: () => FileRead): DatabaseConnection => ({
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const { path, inode } = file()
      // The rows have the shape that Kysely derived from the same query.
      return { rows: (await thread.request({ path, inode, sql, parameters })) as Array<Row> }
    },
    streamQuery: () => {
      throw new Error("The reader answers whole results.")
    },
  })
  const refuse = () => Promise.reject(new Error("The reader only reads."))

  const made: Reader = {
    dialect: (file) => ({
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => ({
        init: () => Promise.resolve(),
        acquireConnection: () => Promise.resolve(connection(file)),
        releaseConnection: () => Promise.resolve(),
        beginTransaction: refuse,
        commitTransaction: refuse,
        rollbackTransaction: refuse,
        destroy: () => Promise.resolve(),
      }),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    }),
  }
  return made
})
