/** A dashboard file with a test's contents, in the tables of the projection. */
import Sqlite from "better-sqlite3"
import { blueprint } from "#projections/capital-pressure/blueprint.ts"
import type { Store } from "#projections/capital-pressure/store.ts"
import { compiler } from "#projections/statement.ts"

export const empty_store: Store = {
  observations: new Map(),
  prices: new Map(),
  composite: {
    days: new Int32Array(),
    z: new Float64Array(),
    tiers: [new Float64Array(), new Float64Array(), new Float64Array(), new Float64Array()],
  },
  feeds: new Map(),
  jobs: new Map(),
  targets: [],
}

const tables = blueprint.projections.flatMap(({ create }) =>
  create(compiler()).map((table) => table.compile().sql),
)

/** A writer in WAL mode, like the projection. */
export const openWriter = (path: string) => {
  const file = new Sqlite(path)
  file.pragma("journal_mode = WAL")
  file.pragma("synchronous = NORMAL")
  return file
}

const nullable = (value: number | undefined) =>
  value === undefined || Number.isNaN(value) ? null : value

/** Writes a store to an open file with these tables. */
const writeStore = (file: Sqlite.Database, store: Store) => {
  const into = (table: string, row: Readonly<Record<string, unknown>>) => {
    const names = Object.keys(row)
    const places = names.map(() => "?").join(", ")
    const sql = `insert or replace into ${table} (${names.join(", ")}) values (${places})`
    file.prepare(sql).run(...Object.values(row))
  }
  file.transaction(() => {
    for (const [metric_id, { days, values }] of store.observations) {
      const insert = file.prepare("insert or replace into capital_observation values (?, ?, ?, ?)")
      for (const [at, day] of days.entries()) insert.run(metric_id, day, values[at], values[at])
    }
    for (const [ticker, { days, close, adjusted }] of store.prices) {
      const insert = file.prepare("insert or replace into capital_price values (?, ?, ?, ?)")
      for (const [at, day] of days.entries()) insert.run(ticker, day, close[at], adjusted[at])
    }
    const { days, z, tiers } = store.composite
    const insert = file.prepare(
      "insert or replace into capital_composite values (?, ?, ?, ?, ?, ?)",
    )
    for (const [at, day] of days.entries()) {
      insert.run(day, z[at], ...tiers.map((tier) => nullable(tier[at])))
    }
    for (const [id, row] of store.feeds) into("capital_feed", { id, ...row, demo: +row.demo })
    for (const [id, row] of store.jobs) into("capital_job", { id, ...row })
    for (const row of store.targets) into("capital_target", { ...row, demo: 0 })
  })()
}

/** Writes a store to the file at `path` and closes it, with all data in that single file. */
export const fillFile = (path: string, store: Store) => {
  const file = openWriter(path)
  for (const sql of tables) file.exec(sql)
  writeStore(file, store)
  file.close()
}
