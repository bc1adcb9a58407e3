/** A thread that runs long queries, so that this one stays free. */
import { Worker } from "node:worker_threads"
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
import type { Answer, FileRead, Question } from "#adapters/sqlite-reader-thread.ts"

export interface Reader {
  /** Kysely over what `file` is at the time of the query. It only reads. */
  readonly dialect: (file: () => FileRead) => Dialect
}

/** Starts the thread at the first query, and ends it with the scope. */
export const reader = Effect.gen(function* () {
  const pending = new Map<number, (answer: Answer) => void>()
  let asked = 0
  let thread: Worker | undefined

  const start = () => {
    const worker = new Worker(new URL("./sqlite-reader-thread.ts", import.meta.url))
    worker.unref()
    worker.on("message", (answer: Answer) => {
      pending.get(answer.id)?.(answer)
      pending.delete(answer.id)
    })
    worker.on("error", (error) => {
      thread = undefined
      for (const [id, answer] of pending) answer({ id, error: error.message })
      pending.clear()
    })
    return worker
  }
  const ask = (question: Omit<Question, "id">) =>
    new Promise<ReadonlyArray<unknown>>((resolve, reject) => {
      const id = ++asked
      pending.set(id, ({ rows, error }) => (rows ? resolve(rows) : reject(new Error(error))))
      thread ??= start()
      thread.postMessage({ id, ...question })
    })

  yield* Effect.addFinalizer(() => Effect.promise(async () => void (await thread?.terminate())))

  const connection = (file: () => FileRead): DatabaseConnection => ({
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const { path, inode } = file()
      // The rows have the shape that Kysely derived from the same query.
      return { rows: (await ask({ path, inode, sql, parameters })) as Array<Row> }
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
