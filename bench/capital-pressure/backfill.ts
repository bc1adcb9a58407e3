/** Suite 10: the composite of 20 years, for the whole process from start to exit. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { runVerb } from "../harness/verb.ts"
import { openDashboard, pythonOf } from "./dashboard-file.ts"

const years = 20
const days_of_year = 365.25

const child = join(import.meta.dirname, "backfill-process.ts")
const spoiler = join(import.meta.dirname, "backfill-spoil.ts")

/** `before` is not timed. */
const timed = (name: string, run: () => void, before?: () => void) => ({
  name,
  round: async () => {
    before?.()
    const began = performance.now()
    run()
    const ms = performance.now() - began
    return { runs: 1, runs_per_s: 1000 / ms, p50_ms: ms, p99_ms: ms }
  },
})

const runProcess = (command: string, flags: ReadonlyArray<string>, env: NodeJS.ProcessEnv) => {
  const { status, stderr } = spawnSync(command, flags, { env, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr.slice(-400))
}

/** The last composite in a copy, as written by the previous run. */
const lastOf = (path: string) => {
  const file = new Sqlite(path, { readonly: true })
  const row = file.prepare("select day, round(z, 5) from capital_composite order by day desc").raw()
  const last = JSON.stringify(row.get())
  file.close()
  return last
}

export const backfill: Suite = async ({ folder, rounds, onEnd }) => {
  const stage = await openDashboard(folder)
  onEnd(stage.stop)
  const copy = join(folder, "copy.sqlite")
  const source = new Sqlite(stage.file, { readonly: true })
  await source.backup(copy)
  source.close()
  const span = [String(Math.ceil(stage.today - years * days_of_year)), String(stage.today)]
  const bare = () => runProcess(process.execPath, [child, copy, ...span], process.env)
  const backfilled = () => runVerb("backfill-composite", [], stage.environment)
  const spoiled = () => runProcess(process.execPath, [spoiler], stage.environment)
  const seats = [
    timed("almanac", backfilled, spoiled),
    timed("almanac, nothing new", backfilled),
    timed("its computation alone", bare),
  ]
  const pandas = await orSkip("pandas", async () => {
    const { python, environment } = pythonOf("pandas")
    const flags = [join(import.meta.dirname, "../peers/backfill.py"), copy, stage.rules, ...span]
    const run = () => runProcess(python, flags, environment)
    bare()
    const ours = lastOf(copy)
    run()
    if (ours !== lastOf(copy)) throw new Error(`pandas wrote ${lastOf(copy)}, and we ${ours}`)
    return timed("pandas", run)
  })
  if (pandas !== undefined) seats.push(pandas)
  const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "processes/s", per_run: 1, ours: "almanac", latency: true }
  const spent =
    `${rounds} processes each, interleaved, after one discarded. almanac is the command with a ` +
    "running server and another composite for each day: it computes all days and writes them to " +
    "the log and the file. With nothing new it computes all and writes none. Its computation " +
    "alone, and pandas, read a copy of the file and write every day into it."
  return [await machine(folder, [measured], []), spent, table(measured, columns)].join("\n\n")
}
