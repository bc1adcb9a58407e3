/** Writes of rows that may already exist. */
import { sql } from "kysely"
import { statement } from "#projections/statement.ts"

interface Columns<Column> {
  /** The primary key. */
  readonly keys: ReadonlyArray<Column>
  /** Columns written in any case; other columns of an existing row stay unchanged. */
  readonly sets: ReadonlyArray<Column>
  /** Columns written for a new row only. */
  readonly first?: ReadonlyArray<Column>
}

/** Tables addressed by name only. */
type AnyTables = Record<string, Record<string, unknown>>

const each = (columns: ReadonlyArray<string>, value: (column: string) => unknown) =>
  Object.fromEntries(columns.map((column) => [column, value(column)]))

/** Inserts a row with these columns, or writes `sets` into the row with the same keys. */
export const upsert =
  <Row>(table: string) =>
  <const Column extends keyof Row & string>({ keys, sets, first = [] }: Columns<Column>) =>
    statement<AnyTables>()<Pick<Row, Column>>((db, row) => {
      // The table's own columns: each has a value in the row.
      const slots = row as Readonly<Record<string, unknown>>
      return db
        .insertInto(table)
        .values(each([...keys, ...sets, ...first], (column) => slots[column]))
        .onConflict((same) =>
          same
            .columns([...keys])
            .doUpdateSet(each(sets, (column) => sql.ref(`excluded.${column}`))),
        )
    })
