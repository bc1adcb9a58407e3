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
 * A column reference that no index may serve: SQLite would guess the best index, PostgreSQL knows
 * it.
 */
export const unindexed = (db: QueryExecutorProvider, column: string): RawBuilder<unknown> =>
  isPostgres(db) ? sql.ref(column) : sql`+${sql.ref(column)}`
