/** Compares two SQLite files in a thread: the one as it was when the thread began. */
import { workerData } from "node:worker_threads"
import Sqlite from "better-sqlite3"
import type { Differences, RowDifference, ShownValue } from "#projections/database.ts"
import { serveCalls } from "#threads"

/** What the thread is begun with: two files, of which the other is built meanwhile. */
export interface Comparison {
  readonly kept: string
  readonly rebuilt: string
  /** Rows that are told; all are counted. */
  readonly rows_max: number
}

/** First `begin`, then `compare`, when the other file is built. */
export type Question = "begin" | "compare"

export type Told = { readonly position: number } | { readonly differences: Differences }

/** What a column of SQLite holds. */
type Value = string | number | bigint | Uint8Array | null

type Row = Readonly<Record<string, Value>>

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** JSON has no bytes and no large integers. */
const shown = (value: Value = null): ShownValue => {
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString("hex")}`
  return typeof value === "bigint" ? String(value) : value
}

/** A table's key: what it declares, or else the whole row. */
const keyOf = (db: Sqlite.Database, table: string) => {
  // What the pragma answers, of which these two.
  const columns = db.pragma(`table_info(${quoted(table)})`) as Array<{ name: string; pk: number }>
  const key = columns.filter(({ pk }) => pk > 0)
  return (key.length > 0 ? key : columns).map(({ name }) => name)
}

/** Rows of one side that the other has not so, by what is done with each. */
const compareTable = (
  db: Sqlite.Database,
  table: string,
  tell: (difference: () => RowDifference) => void,
) => {
  const key = keyOf(db, table)
  const name = quoted(table)
  const where = key.map((column) => `${quoted(column)} is ?`).join(" and ")
  const only = (side: string, other: string) =>
    db.prepare<Array<unknown>, Row>(
      `select * from ${side}.${name} except select * from ${other}.${name}`,
    )
  const find = (side: string) =>
    db.prepare<Array<unknown>, Row>(`select * from ${side}.${name} where ${where}`)
  const keyIn = (row: Row) => Object.fromEntries(key.map((column) => [column, shown(row[column])]))
  const at = (row: Row) => key.map((column) => row[column])
  const in_kept = find("main")
  const in_rebuilt = find("rebuilt")

  for (const row of only("main", "rebuilt").iterate()) {
    tell(() => {
      const rebuilt = in_rebuilt.get(...at(row))
      if (rebuilt === undefined) return { table, key: keyIn(row), kind: "extra", columns: [] }
      const columns = Object.keys(row)
        .filter((column) => shown(row[column]) !== shown(rebuilt[column]))
        .map((column) => ({
          column,
          kept: shown(row[column]),
          rebuilt: shown(rebuilt[column]),
        }))
      return { table, key: keyIn(row), kind: "changed", columns }
    })
  }
  for (const row of only("rebuilt", "main").iterate()) {
    // One that is there otherwise was told above.
    if (in_kept.get(...at(row)) !== undefined) continue
    tell(() => ({ table, key: keyIn(row), kind: "missing", columns: [] }))
  }
}

const compare = (db: Sqlite.Database, rows_max: number): Differences => {
  const tables = db
    .prepare(
      "select name from main.sqlite_schema where type = 'table' " +
        "and name not like 'sqlite_%' and name not like 'live_%' order by name",
    )
    .pluck()
    // One column of text.
    .all() as Array<string>
  const rows: Array<RowDifference> = []
  let count = 0
  for (const table of tables) {
    compareTable(db, table, (difference) => {
      count++
      if (rows.length < rows_max) rows.push(difference())
    })
  }
  return { tables: tables.length, count, rows }
}

// Of whoever started the thread.
const { kept, rebuilt, rows_max } = workerData as Comparison
const db = new Sqlite(kept, { readonly: true })

/** From this read on the kept file is seen as it is now; the other, as it is when it is built. */
const begin = (): Told => {
  db.prepare("attach ? as rebuilt").run(rebuilt)
  db.exec("begin")
  // One column of a number.
  return { position: db.prepare("select position from main.checkpoint").pluck().get() as number }
}

serveCalls(
  (question: Question): Told =>
    question === "begin" ? begin() : { differences: compare(db, rows_max) },
)
