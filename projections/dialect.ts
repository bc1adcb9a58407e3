/** The few SQL fragments that differ between SQLite and PostgreSQL. */
import { PostgresAdapter, type QueryExecutorProvider, type RawBuilder, sql } from "kysely"

const isPostgres = (db: QueryExecutorProvider) =>
  db.getExecutor().adapter instanceof PostgresAdapter

/** An integer field of a JSON column; null if absent. */
export const integerIn = (
  db: QueryExecutorProvider,
  column: string,
  key: string,
): RawBuilder<number | null> =>
  isPostgres(db)
    ? sql`(cast(${sql.ref(column)} as json) ->> ${sql.lit(key)})::bigint`
    : sql`${sql.ref(column)} ->> ${sql.lit(key)}`

/**
 * A column reference that keeps SQLite from using an index on the column, because it can only guess
 * which index is best. PostgreSQL has statistics, so there it is a plain reference.
 */
export const unindexed = (db: QueryExecutorProvider, column: string): RawBuilder<unknown> =>
  isPostgres(db) ? sql.ref(column) : sql`+${sql.ref(column)}`
