/** A backfill's computation in a bare process: reads a file, computes 20 years, writes them. */
import Sqlite from "better-sqlite3"
import { loadObservations } from "#adapters/capital-pressure/store.ts"
import { compositeHistory } from "#projections/capital-pressure/composite.ts"

const [path = "", from = "", to = ""] = process.argv.slice(2)
const observations = loadObservations(path, { vintage: "latest" })
const { days, z, tiers } = compositeHistory(observations, Number(from), Number(to))
const file = new Sqlite(path)
const insert = file.prepare("insert or replace into capital_composite values (?, ?, ?, ?, ?, ?)")
const nullable = (value = Number.NaN) => (Number.isNaN(value) ? null : value)
file.transaction(() => {
  for (const [at, day] of days.entries()) {
    insert.run(day, z[at], ...tiers.map((tier) => nullable(tier[at])))
  }
})()
file.close()
