/**
 * Loads the dashboard's database into typed arrays, read-only.
 *
 * Source: decisions of document 3, dashboard storage; market facts, A2.8.
 */
import Sqlite from "better-sqlite3"
import type {
  CompositeSeries,
  FeedRow,
  JobRow,
  PriceSeries,
  Series,
  Store,
} from "#projections/capital-pressure/store.ts"
import type { JobId } from "#schemas/capital-pressure/schedule.ts"
import type { WatchlistTarget } from "#schemas/capital-pressure/watchlist.ts"

/** The latest values, or each value as first released. */
export type Vintage = "latest" | "first"

/** How long to wait for an exclusive lock, in milliseconds. */
const busy_ms_max = 2000

/** Opens the file at `path` read-only. Throws SQLite's error. */
export const openStore = (path: string, busy_ms = busy_ms_max): Sqlite.Database =>
  new Sqlite(path, { readonly: true, fileMustExist: true, timeout: busy_ms })

/** Loads everything in the file at `path`, as of one commit. Throws if it cannot be read. */
export const loadStore = (path: string, options: { readonly vintage: Vintage }): Store =>
  readTransaction(path, (file) => readStore(file, options.vintage))

/** Loads only observations, by metric_id, the input of a composite. Throws as loadStore. */
export const loadObservations = (
  path: string,
  options: { readonly vintage: Vintage },
): Store["observations"] => readTransaction(path, (file) => observationsOf(file, options.vintage))

/** Loads the composite. Throws as loadStore. */
export const loadComposite = (path: string): CompositeSeries => readTransaction(path, compositeOf)

/** Runs `read` in one transaction. */
const readTransaction = <A>(path: string, read: (file: Sqlite.Database) => A): A => {
  const file = openStore(path)
  try {
    return file.transaction(read)(file)
  } finally {
    file.close()
  }
}

/** Reads everything from an open file, as of one commit. */
export const readStore = (file: Sqlite.Database, vintage: Vintage): Store =>
  file.transaction(() => ({
    observations: observationsOf(file, vintage),
    prices: pricesOf(file),
    composite: compositeOf(file),
    feeds: new Map(rowsOf<SelectedFeed>(file, feeds).map(feedOf)),
    jobs: new Map(rowsOf<SelectedJob>(file, jobs).map(({ id, ...row }) => [id, row])),
    targets: rowsOf<WatchlistTarget>(file, targets),
  }))()

const feeds = "select id, last_ingested_at, last_error_at, last_error, demo from capital_feed"
const jobs =
  "select id, last_run_at, last_success_at, last_error_at, last_error from capital_job order by id"
const targets = "select ticker, target, fwd_pe, set_on from capital_target order by ticker"

type SelectedFeed = Omit<FeedRow, "demo"> & { readonly id: string; readonly demo: number }
type SelectedJob = JobRow & { readonly id: JobId }

const feedOf = ({ id, demo, ...row }: SelectedFeed): readonly [string, FeedRow] => [
  id,
  { ...row, demo: demo !== 0 },
]

// The columns are those that the projection of the same name declares.
const rowsOf = <Row>(file: Sqlite.Database, sql: string) => file.prepare(sql).all() as Array<Row>

const idsOf = (file: Sqlite.Database, column: string, table: string) =>
  // One column of text.
  file.prepare(`select distinct ${column} from ${table}`).pluck().all() as Array<string>

/** Reads a column; null means no value. */
type ReadColumn = (column: string) => ReadonlyArray<number | null>

/**
 * The series of a table by key. Each column has its own query within the transaction: an array per
 * row would take twice the time and dominate allocations.
 */
const seriesOf = <A>(
  file: Sqlite.Database,
  of: { readonly table: string; readonly key: string },
  make: (read: ReadColumn) => A,
): ReadonlyMap<string, A> => {
  const { table, key } = of
  const compiled = new Map<string, Sqlite.Statement>()
  const statementOf = (column: string) => {
    const sql = `select ${column} from ${table} where ${key} = ? order by day`
    const statement = compiled.get(column) ?? file.prepare(sql).pluck()
    compiled.set(column, statement)
    return statement
  }
  // All requested columns are numbers or null.
  const numbersOf = (id: string, column: string) =>
    statementOf(column).all(id) as Array<number | null>
  const ids = idsOf(file, key, table)
  return new Map(ids.map((id) => [id, make((column) => numbersOf(id, column))]))
}

const observationsOf = (file: Sqlite.Database, vintage: Vintage) => {
  const column = vintage === "first" ? "first_value" : "value"
  const of = { table: "capital_observation", key: "metric_id" }
  return seriesOf(
    file,
    of,
    (read): Series => ({ days: daysOf(read), values: valuesOf(read(column)) }),
  )
}

const pricesOf = (file: Sqlite.Database) =>
  seriesOf(
    file,
    { table: "capital_price", key: "ticker" },
    (read): PriceSeries => ({
      days: daysOf(read),
      close: valuesOf(read("close")),
      adjusted: valuesOf(read("adjusted")),
    }),
  )

const compositeOf = (file: Sqlite.Database): CompositeSeries => {
  const read: ReadColumn = (column) =>
    // All columns are numbers or null.
    file.prepare(`select ${column} from capital_composite order by day`).pluck().all() as Array<
      number | null
    >
  const tier = (nth: number) => valuesOf(read(`tier_${nth}`))
  return {
    days: daysOf(read),
    z: valuesOf(read("z")),
    tiers: [tier(1), tier(2), tier(3), tier(4)],
  }
}

// A primary key is never null.
const daysOf = (read: ReadColumn) => Int32Array.from(read("day") as ReadonlyArray<number>)

const valuesOf = (column: ReadonlyArray<number | null>) =>
  Float64Array.from(column, (value) => value ?? Number.NaN)
