/** Compares the read models in their files with the same read models rebuilt from the log. */
import assert from "node:assert/strict"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { type Client, responseText } from "./client.ts"
import { until } from "./server.ts"

/** Maximum time until a read model has applied the whole log, in milliseconds. */
const caught_up_ms_max = 30_000

type Rows = Readonly<Record<string, ReadonlyArray<string>>>

/** Every row of every table of one file, sorted, so that equal files produce equal results. */
const dumpFile = (path: string): Rows => {
  const file = new Sqlite(path, { readonly: true })
  try {
    // One transaction, so that each concurrent write is seen completely or not at all.
    return file.transaction(() => {
      const tables = file
        .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
        .pluck()
        .all()
        .map(String)
      const rows = (table: string) =>
        file
          .prepare(`select * from "${table}"`)
          .all()
          .map((row) => JSON.stringify(row))
      return Object.fromEntries(tables.toSorted().map((table) => [table, rows(table).toSorted()]))
    })()
  } finally {
    file.close()
  }
}

/**
 * `<service>.v<version>.sqlite`. Files of live values have other names and do not come from the
 * log.
 */
const read_model_file = /^[a-z-]+\.v\d+\.sqlite$/

/** One read model has a separate location, where other programs read it. */
const dashboard_file = "capital-pressure.sqlite"

/** The read models of a data folder, by file name. */
export const dumpReadModels = (data_dir: string): Readonly<Record<string, Rows>> => {
  const folder = join(data_dir, "read-models")
  const names = readdirSync(folder).filter((name) => read_model_file.test(name))
  return Object.fromEntries([
    ...names.toSorted().map((name) => [name, dumpFile(join(folder, name))] as const),
    [dashboard_file, dumpFile(join(data_dir, dashboard_file))] as const,
  ])
}

interface ReadModelList {
  readonly read_models: ReadonlyArray<{ readonly name: string; readonly behind: number }>
}

const listed = (admin: Client) => admin.json<ReadModelList>("GET", "/v1/admin/read-models")

/** Waits until a server's read models have applied the whole log. */
export const caughtUp = (admin: Client) =>
  until("the read models to show all of the log", caught_up_ms_max, async () => {
    const { read_models } = await listed(admin)
    return read_models.every(({ behind }) => behind === 0)
  })

const rebuild = async (admin: Client, name: string) => {
  const answer = await admin.ask("POST", `/v1/admin/read-models/${name}/rebuild`)
  assert.equal(answer.status, 202, `rebuild of ${name}: ${responseText(answer)}`)
}

const checkpoints = (dump: Readonly<Record<string, Rows>>) =>
  Object.values(dump).map(({ checkpoint }) => checkpoint)

/** Each row that only one of the two has, with its table and its side. */
const differences = (
  kept: Readonly<Record<string, Rows>>,
  rebuilt: Readonly<Record<string, Rows>>,
) =>
  [...new Set([...Object.keys(kept), ...Object.keys(rebuilt)])].flatMap((name) => {
    const [one = {}, other = {}] = [kept[name], rebuilt[name]]
    return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((table) => {
      const [rows, others] = [one[table] ?? [], other[table] ?? []]
      const [known, made] = [new Set(rows), new Set(others)]
      return [
        ...rows.filter((row) => !made.has(row)).map((row) => `kept ${name} ${table} ${row}`),
        ...others.filter((row) => !known.has(row)).map((row) => `rebuilt ${name} ${table} ${row}`),
      ]
    })
  })

/** Maximum number of retries because of concurrent commits. */
const tries_max = 5

/** Asserts that each read model of a running server equals a rebuild from the log, row by row. */
export const readModelsEqualRebuilt = async (admin: Client, data_dir: string) => {
  for (let tries = 1; ; tries++) {
    await caughtUp(admin)
    const before = dumpReadModels(data_dir)
    const names = (await listed(admin)).read_models.map(({ name }) => name)
    for (const name of names) await rebuild(admin, name)
    const after = dumpReadModels(data_dir)
    const is_same_log = JSON.stringify(checkpoints(before)) === JSON.stringify(checkpoints(after))
    if (!is_same_log && tries < tries_max) continue
    assert(is_same_log, `after ${tries} tries a commit still comes between a dump and a rebuild`)
    assert.deepEqual(differences(before, after), [], "a read model is not what its rebuild is")
    assert.deepEqual(after, before, "a row is there more than once")
    assert.equal(Object.keys(before).length, names.length, "each read model was compared")
    return
  }
}
