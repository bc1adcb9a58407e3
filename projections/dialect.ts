/** The few places where SQLite and PostgreSQL want other words for the same. */
import { PostgresAdapter, type QueryExecutorProvider, type RawBuilder, sql } from "kysely"

const isPostgres = (db: QueryExecutorProvider) =>
  db.getExecutor().adapter instanceof PostgresAdapter

/** An integer of the object that a column of JSON text holds; null where there is none. */
export const integerIn = (
  db: QueryExecutorProvider,
  column: string,
  key: string,
): RawBuilder<number | null> =>
  isPostgres(db)
    ? sql`(cast(${sql.ref(column)} as json) ->> ${sql.lit(key)})::bigint`
    : sql`${sql.ref(column)} ->> ${sql.lit(key)}`

/** A column that no index is to serve: SQLite would guess which is worth most, PostgreSQL knows. */
export const unindexed = (db: QueryExecutorProvider, column: string): RawBuilder<unknown> =>
  isPostgres(db) ? sql.ref(column) : sql`+${sql.ref(column)}`
