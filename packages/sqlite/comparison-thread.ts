/**
 * A thread that compares two SQLite files. It reads the first as of the start of the comparison.
 */
import { workerData } from "node:worker_threads"
import Sqlite from "better-sqlite3"
import type { Differences, DumpValue, RowDifference } from "#projections/database.ts"
import { serveCalls } from "#threads"

/** The files to compare. `rebuilt` is still being built when the thread starts. */
export interface Comparison {
  readonly kept: string
  readonly rebuilt: string
  /** The number of differences that are listed; all are counted. */
  readonly rows_max: number
}

/** First `begin`, then `compare` once the other file is complete. */
export type ComparisonStep = "begin" | "compare"

export type ComparisonResponse =
  | { readonly position: number }
  | { readonly differences: Differences }

/** The values of a SQLite column. */
type Value = string | number | bigint | Uint8Array | null

type Row = Readonly<Record<string, Value>>

const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Converts bytes and bigints, which JSON does not have. */
const jsonValue = (value: Value = null): DumpValue => {
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString("hex")}`
  return typeof value === "bigint" ? String(value) : value
}

/** A table's primary key, or all columns if it has none. */
const primaryKey = (db: Sqlite.Database, table: string) => {
  // The pragma returns more columns; these two are used.
  const columns = db.pragma(`table_info(${quoteName(table)})`) as Array<{
    name: string
    pk: number
  }>
  const key = columns.filter(({ pk }) => pk > 0)
  return (key.length > 0 ? key : columns).map(({ name }) => name)
}

/** Reports the rows that differ between the two databases. */
const compareTable = (
  db: Sqlite.Database,
  table: string,
  report: (difference: () => RowDifference) => void,
) => {
  const key = primaryKey(db, table)
  const name = quoteName(table)
  const where = key.map((column) => `${quoteName(column)} is ?`).join(" and ")
  const rowsOnlyIn = (side: string, other: string) =>
    db.prepare<Array<unknown>, Row>(
      `select * from ${side}.${name} except select * from ${other}.${name}`,
    )
  const find = (side: string) =>
    db.prepare<Array<unknown>, Row>(`select * from ${side}.${name} where ${where}`)
  const keyOf = (row: Row) =>
    Object.fromEntries(key.map((column) => [column, jsonValue(row[column])]))
  const keyValues = (row: Row) => key.map((column) => row[column])
  const in_kept = find("main")
  const in_rebuilt = find("rebuilt")

  for (const row of rowsOnlyIn("main", "rebuilt").iterate()) {
    report(() => {
      const rebuilt = in_rebuilt.get(...keyValues(row))
      if (rebuilt === undefined) return { table, key: keyOf(row), kind: "extra", columns: [] }
      const columns = Object.keys(row)
        .filter((column) => jsonValue(row[column]) !== jsonValue(rebuilt[column]))
        .map((column) => ({
          column,
          kept: jsonValue(row[column]),
          rebuilt: jsonValue(rebuilt[column]),
        }))
      return { table, key: keyOf(row), kind: "changed", columns }
    })
  }
  for (const row of rowsOnlyIn("rebuilt", "main").iterate()) {
    // A row with the same key was reported as changed above.
    if (in_kept.get(...keyValues(row)) !== undefined) continue
    report(() => ({ table, key: keyOf(row), kind: "missing", columns: [] }))
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

// `comparison.ts` starts this thread with a comparison.
const { kept, rebuilt, rows_max } = workerData as Comparison
const db = new Sqlite(kept, { readonly: true })

/** Starts a read transaction, which sees `kept` as it is now; `rebuilt` is read in `compare`. */
const begin = (): ComparisonResponse => {
  db.prepare("attach ? as rebuilt").run(rebuilt)
  db.exec("begin")
  // One column of a number.
  return { position: db.prepare("select position from main.checkpoint").pluck().get() as number }
}

serveCalls(
  (step: ComparisonStep): ComparisonResponse =>
    step === "begin" ? begin() : { differences: compare(db, rows_max) },
)
