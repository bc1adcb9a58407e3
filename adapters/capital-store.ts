/**
 * The dashboard's file as typed arrays. It is only ever read here, and the file must be there.
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

/** Values as they are known now, or as each was first told. */
export type Vintage = "latest" | "first"

/** How long a file that is held exclusively is waited for, in milliseconds. */
const busy_ms_max = 2000

/** Opens the file at `path` to be read; throws what SQLite says where that cannot be. */
export const openStore = (path: string, busy_ms = busy_ms_max): Sqlite.Database =>
  new Sqlite(path, { readonly: true, fileMustExist: true, timeout: busy_ms })

/** Everything in the file at `path`, as of one commit. Throws where it cannot be read. */
export const loadStore = (path: string, options: { readonly vintage: Vintage }): Store =>
  reading(path, (file) => readStore(file, options.vintage))

/** Observations alone, by metric_id: all that a composite is computed of. Throws as loadStore. */
export const loadObservations = (
  path: string,
  options: { readonly vintage: Vintage },
): Store["observations"] => reading(path, (file) => observationsOf(file, options.vintage))

/** The composite as it was computed last. Throws as loadStore. */
export const loadComposite = (path: string): CompositeSeries => reading(path, compositeOf)

const reading = <A>(path: string, read: (file: Sqlite.Database) => A): A => {
  const file = openStore(path)
  try {
    return read(file)
  } finally {
    file.close()
  }
}

/** Everything in an open file, as of one commit. */
export const readStore = (file: Sqlite.Database, vintage: Vintage): Store =>
  file.transaction(() => ({
    observations: observationsOf(file, vintage),
    prices: pricesOf(file),
    composite: compositeOf(file),
    feeds: new Map(rowsOf<FeedSelected>(file, feeds).map(feedOf)),
    jobs: new Map(rowsOf<JobSelected>(file, jobs).map(({ id, ...row }) => [id, row])),
    targets: rowsOf<WatchlistTarget>(file, targets),
  }))()

const feeds = "select id, last_ingested_at, last_error_at, last_error, demo from capital_feed"
const jobs =
  "select id, last_run_at, last_success_at, last_error_at, last_error from capital_job order by id"
const targets = "select ticker, target, fwd_pe, set_on from capital_target order by ticker"

type FeedSelected = Omit<FeedRow, "demo"> & { readonly id: string; readonly demo: number }
type JobSelected = JobRow & { readonly id: JobId }

const feedOf = ({ id, demo, ...row }: FeedSelected): readonly [string, FeedRow] => [
  id,
  { ...row, demo: demo !== 0 },
]

// The columns of these tables are what the projection of the same name declares.
const rowsOf = <Row>(file: Sqlite.Database, sql: string) => file.prepare(sql).all() as Array<Row>

/** Rows as arrays of numbers: half the time of objects. Null is no number. */
type Numbers = ReadonlyArray<ReadonlyArray<number | null>>

const idsOf = (file: Sqlite.Database, column: string, table: string) =>
  // One column of text.
  file.prepare(`select distinct ${column} from ${table}`).pluck().all() as Array<string>

/** One query for each series: its name is not read again with every row. */
const seriesOf = <A>(
  file: Sqlite.Database,
  of: { readonly table: string; readonly key: string; readonly columns: string },
  make: (rows: Numbers) => A,
): ReadonlyMap<string, A> => {
  const { table, key, columns } = of
  const sql = `select day, ${columns} from ${table} where ${key} = ? order by day`
  const statement = file.prepare(sql).raw()
  return new Map(
    // Every column selected is a number, or null.
    idsOf(file, key, table).map((id) => [id, make(statement.all(id) as Array<Array<number>>)]),
  )
}

const observationsOf = (file: Sqlite.Database, vintage: Vintage) => {
  const columns = vintage === "first" ? "first_value" : "value"
  return seriesOf(file, { table: "capital_observation", key: "metric_id", columns }, observed)
}

const pricesOf = (file: Sqlite.Database) =>
  seriesOf(file, { table: "capital_price", key: "ticker", columns: "close, adjusted" }, priced)

const observed = (rows: Numbers): Series => ({ days: daysOf(rows), values: valuesOf(rows, 1) })

const priced = (rows: Numbers): PriceSeries => ({
  days: daysOf(rows),
  close: valuesOf(rows, 1),
  adjusted: valuesOf(rows, 2),
})

const compositeOf = (file: Sqlite.Database): CompositeSeries => {
  const sql = "select day, z, tier_1, tier_2, tier_3, tier_4 from capital_composite order by day"
  // Every column is a number, or null.
  const rows = file.prepare(sql).raw().all() as Array<Array<number | null>>
  return {
    days: daysOf(rows),
    z: valuesOf(rows, 1),
    tiers: [valuesOf(rows, 2), valuesOf(rows, 3), valuesOf(rows, 4), valuesOf(rows, 5)],
  }
}

const daysOf = (rows: Numbers) => {
  const days = new Int32Array(rows.length)
  for (const [at, row] of rows.entries()) days[at] = row[0] ?? Number.NaN
  return days
}

const valuesOf = (rows: Numbers, column: number) => {
  const values = new Float64Array(rows.length)
  for (const [at, row] of rows.entries()) values[at] = row[column] ?? Number.NaN
  return values
}
