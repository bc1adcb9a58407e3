/** Read models as their files have them, against the same ones built from nothing. */
import assert from "node:assert/strict"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { type Client, shown } from "./client.ts"
import { until } from "./server.ts"

/** How long a read model may take to show what the log holds, in milliseconds. */
const caught_up_ms_max = 30_000

type Rows = Readonly<Record<string, ReadonlyArray<string>>>

/** Every row of every table of one file, sorted: equal files are equal in it. */
const dumpFile = (path: string): Rows => {
  const file = new Sqlite(path, { readonly: true })
  try {
    // One transaction, so that a writer beside us is seen as a whole or not at all.
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

/** `<service>.v<version>.sqlite`: live values lie beside, and no log makes those. */
const read_model_file = /^[a-z-]+\.v\d+\.sqlite$/

/** One has a place of its own, where others read it. */
const dashboard_file = "capital-pressure.sqlite"

/** The read models of a data folder by the names of their files. */
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

/** Waits until a server shows all that the log holds. */
export const caughtUp = (admin: Client) =>
  until("the read models to show all of the log", caught_up_ms_max, async () => {
    const { read_models } = await listed(admin)
    return read_models.every(({ behind }) => behind === 0)
  })

const rebuild = async (admin: Client, name: string) => {
  const answer = await admin.ask("POST", `/v1/admin/read-models/${name}/rebuild`)
  assert.equal(answer.status, 202, `rebuild of ${name}: ${shown(answer)}`)
}

const checkpoints = (dump: Readonly<Record<string, Rows>>) =>
  Object.values(dump).map(({ checkpoint }) => checkpoint)

/** Each row that only one of the two has, with its table and which one that is. */
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

/** Times that a commit may come in between, before that is a failure. */
const tries_max = 5

/** Each read model of a running server is what the log makes of nothing, row by row. */
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
