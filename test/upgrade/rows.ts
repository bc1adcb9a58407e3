/** Read models of two releases: compares the data that both keep, row by row. */

/** Rows as JSON, by table, by file name. */
export type Tables = Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>>

type Row = Readonly<Record<string, unknown>>

/** Internal tables: the position of a read model. */
const own: ReadonlySet<string> = new Set(["checkpoint"])

/** The rows reduced to these columns, sorted. */
export const rowsOf = (rows: ReadonlyArray<string>, columns: ReadonlyArray<string>) =>
  rows
    .map((text): Row => JSON.parse(text))
    .map((row) => JSON.stringify(columns.map((column) => [column, row[column]])))
    .sort()

const columnsOf = (rows: ReadonlyArray<string>) => Object.keys(JSON.parse(rows[0] ?? "{}"))

/** For example, `blob-storage` for `blob-storage.v2.sqlite`. */
const serviceOf = (file: string) => file.split(".")[0] ?? ""

/** The tables of each service that differ, among those that both have. */
export const differences = (one: Tables, other: Tables): ReadonlyArray<string> =>
  Object.entries(one).flatMap(([file, tables]) => {
    const found = Object.entries(other).find(([name]) => serviceOf(name) === serviceOf(file))
    return Object.entries(tables).flatMap(([table, rows]) => {
      const others = found?.[1][table]
      if (own.has(table) || others === undefined) return []
      if (rows.length !== others.length) return [`${table}: ${rows.length} and ${others.length}`]
      const has = new Set(columnsOf(others))
      const columns = columnsOf(rows).filter((column) => has.has(column))
      const [mine, theirs] = [rowsOf(rows, columns), rowsOf(others, columns)]
      return JSON.stringify(mine) === JSON.stringify(theirs) ? [] : [table]
    })
  })
