/** Read models of two releases: what both keep, row by row. */

/** Rows as JSON, by table, by the name of a file. */
export type Tables = Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>>

type Row = Readonly<Record<string, unknown>>

/** The machinery's own: where a read model stands. */
const own: ReadonlySet<string> = new Set(["checkpoint"])

/** The rows with these columns only, sorted. */
export const rowsOf = (rows: ReadonlyArray<string>, columns: ReadonlyArray<string>) =>
  rows
    .map((text): Row => JSON.parse(text))
    .map((row) => JSON.stringify(columns.map((column) => [column, row[column]])))
    .sort()

const columnsOf = (rows: ReadonlyArray<string>) => Object.keys(JSON.parse(rows[0] ?? "{}"))

/** `blob-storage` of `blob-storage.v2.sqlite`. */
const serviceOf = (file: string) => file.split(".")[0] ?? ""

/** The tables of each service in which the two do not agree, where both have them. */
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
