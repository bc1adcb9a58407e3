/** Writes of rows that may be there already. */
import { sql } from "kysely"
import { statement } from "#projections/statement.ts"

interface Columns<Column> {
  /** The primary key. */
  readonly keys: ReadonlyArray<Column>
  /** What is written whether or not the row is there; other columns stay as they were. */
  readonly sets: ReadonlyArray<Column>
  /** What only a new row gets. */
  readonly first?: ReadonlyArray<Column>
}

/** Tables that a statement knows by their names only. */
type AnyTables = Record<string, Record<string, unknown>>

const each = (columns: ReadonlyArray<string>, value: (column: string) => unknown) =>
  Object.fromEntries(columns.map((column) => [column, value(column)]))

/** Inserts a row with these columns, or writes `sets` into the one that has its keys. */
export const upsert =
  <Row>(table: string) =>
  <const Column extends keyof Row & string>({ keys, sets, first = [] }: Columns<Column>) =>
    statement<AnyTables>()<Pick<Row, Column>>((db, row) => {
      // The table's own columns: each has its value in the row.
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
