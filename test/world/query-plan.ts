/** SQLite's query plans for the statements of a read model. */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { type CompiledQuery, Kysely, type SqliteDatabase, SqliteDialect } from "kysely"
import type { Blueprint } from "#projections/read-model.ts"
import { compiler } from "#projections/statement.ts"

/** A database in memory with the read model's tables. */
export const emptyDatabase = <Tables>({ projections }: Blueprint<Tables>) => {
  const database = new Sqlite(":memory:")
  const schema = compiler<Tables>()
  for (const { create } of projections) {
    for (const table of create(schema)) database.exec(table.compile().sql)
  }
  return database
}

/** The query plan of a statement. */
export const detailsOf = (
  database: Sqlite.Database,
  { sql, parameters }: Pick<CompiledQuery, "sql" | "parameters">,
) =>
  database
    .prepare<Array<unknown>, { detail: string }>(`explain query plan ${sql}`)
    .all(...parameters)
    .map(({ detail }) => detail)

const kyselyDatabase = (database: Sqlite.Database): SqliteDatabase => ({
  close: () => database.close(),
  prepare: (sql) => {
    const statement = database.prepare<Array<unknown>>(sql)
    return {
      reader: statement.reader,
      all: (parameters) => statement.all(...parameters),
      run: (parameters) => statement.run(...parameters),
      iterate: (parameters) => statement.iterate(...parameters),
    }
  },
})

/** The query plans of the statements that `list` runs. */
export const planOf = async <Tables>(
  blueprint: Blueprint<Tables>,
  list: (db: Kysely<Tables>) => Effect.Effect<unknown>,
) => {
  const database = emptyDatabase(blueprint)
  const queries: Array<CompiledQuery> = []
  const db = new Kysely<Tables>({
    dialect: new SqliteDialect({ database: kyselyDatabase(database) }),
    log: ({ query }) => {
      queries.push(query)
    },
  })
  await Effect.runPromise(list(db))
  const lines = queries.flatMap((query) => detailsOf(database, query))
  database.close()
  return lines.join("; ")
}
