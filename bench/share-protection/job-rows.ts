/**
 * One million rows of jobs, and two ways to read a page of a thousand: the read model's query, and
 * the prepared statement that is its upper bound.
 */
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Exit, Scope } from "effect"
import { openDatabase } from "#projections/read-model.ts"
import { blueprint } from "#projections/share-protection/blueprint.ts"
import { listJobs } from "#projections/share-protection/job.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { sqlite } from "#sqlite"
import type { Contestant, Home } from "../harness/contestant.ts"

export const rows = 1_000_000
export const page_rows = 1000
const projects = 10

/** Next to the contestants' folders, because they read the same file. */
const folderOf = ({ folder }: Pick<Home, "folder">) => join(folder, "..", "rows")
const fileIn = (folder: string) => join(folder, `${blueprint.service}.v${blueprint.version}.sqlite`)

const open = (folder: string) => Effect.provide(openDatabase(blueprint), sqlite(folder))

/** The n-th id; ids increase as in a real table. */
const idOf = (n: number) => {
  const hex = n.toString(16)
  return `${hex.padStart(8, "0")}-0000-7000-8000-${hex.padStart(12, "0")}`
}

/** In SQL, because only reading is measured. */
const fill_rows = `
  with recursive n(n) as (values (0) union all select n + 1 from n where n + 1 < ${rows})
  insert into share_protection_job (id, job_type, state, project_id, resource_type, resource_id,
    target_id, share_id, backup_id, worker_id, attempt, error_code, error_detail, error_category,
    started_at, finished_at, cancelled, created_at, updated_at)
  select printf('%08x-0000-7000-8000-%012x', n, n), 'backup',
    case n % 20 when 0 then 'error' else 'available' end, 'p' || (n % ${projects}), 'backup',
    printf('%08x-0000-7000-9000-%012x', n, n), printf('%08x-0000-7000-a000-%012x', 0, n % 40),
    printf('%08x-0000-7000-b000-%012x', 0, n % 5000), printf('%08x-0000-7000-9000-%012x', n, n),
    'worker-' || (n % 30), 1, case n % 20 when 0 then 'svc.engine_error' end,
    case n % 20 when 0 then 'The engine exited with 1.' end,
    case n % 20 when 0 then 'operator_action_required' end,
    '2026-11-20T12:00:00.000Z', '2026-11-20T12:30:00.000Z', 0,
    '2026-11-20T11:59:00.000Z', '2026-11-20T12:30:00.000Z' from n`

/** Creates the file that the contestants read, in `folder`. */
export const fillRows = async (folder: string): Promise<void> => {
  const home = folderOf({ folder: join(folder, "any") })
  await Effect.runPromise(Effect.scoped(open(home)))
  const file = new Sqlite(fileIn(home))
  file.pragma("journal_mode = wal")
  file.exec(fill_rows)
  file.close()
}

/** A page's marker; successive pages of a run are far apart. */
const markerOf = (i: number) =>
  idOf(page_rows * projects + ((i * 7919) % (rows - page_rows * projects)))

const projectOf = (i: number) => ProjectId.make(`p${i % projects}`)

const must = (found: number) => {
  if (found !== page_rows) throw new Error(`a page of ${found} rows`)
}

/** Reads through the read model's own query. */
const almanacOf = (
  name: string,
  filterOf: (i: number) => { project_id?: ProjectId },
): Contestant => ({
  name,
  start: async (home) => {
    const scope = await Effect.runPromise(Scope.make())
    const { db } = await Effect.runPromise(Scope.provide(open(folderOf(home)), scope))
    return {
      run: async (i) => {
        const page = { limit: page_rows, marker: markerOf(i) }
        must((await Effect.runPromise(listJobs(db, filterOf(i), page))).rows.length)
      },
      stop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
    }
  },
})

/** Reads the same page with one statement, prepared once, and nothing else. */
const bareOf = (
  name: string,
  where: string,
  valuesOf: (i: number) => ReadonlyArray<string>,
): Contestant => ({
  name,
  start: async (home) => {
    const file = new Sqlite(fileIn(folderOf(home)), { readonly: true })
    const page = file.prepare(
      `select * from share_protection_job where ${where} order by id desc limit ${page_rows}`,
    )
    return {
      run: async (i) => must(page.all(...valuesOf(i)).length),
      stop: async () => void file.close(),
    }
  },
})

export const tenant = almanacOf("almanac", (i) => ({ project_id: projectOf(i) }))
export const operator = almanacOf("almanac, all projects", () => ({}))

export const bareTenant = bareOf("bare statement", "project_id = ? and id < ?", (i) => [
  projectOf(i),
  markerOf(i),
])
export const bareOperator = bareOf("bare statement, all projects", "id < ?", (i) => [markerOf(i)])
