/** Suite 11: the mirror of the carrier registry: a search of a million numbers, and an import. */
import { spawnSync } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { Registry } from "#actors/carrier-search/registry.ts"
import { registryMirror } from "#adapters/carrier-search/mirror.ts"
import { dot_limit } from "#adapters/carrier-search/mirror-file.ts"
import { formats } from "#schemas/carrier-search/format.ts"
import { writeFiles } from "../../test/process/kill/mirror-kill.ts"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { runVerb } from "../harness/verb.ts"

const dockets = 2_000_000
/** The middle of the dockets, with as many numbers as one search allows. */
const range = { start: 500_001, end: 1_500_000 }
const seed = 1

const timed = (name: string, run: () => Promise<void> | void) => ({
  name,
  round: async () => {
    const began = performance.now()
    await run()
    const ms = performance.now() - began
    return { runs: 1, runs_per_s: 1000 / ms, p50_ms: ms, p99_ms: ms }
  },
})

/** SQLite's own import into a separate file, with the shell's defaults. */
const shellImport = (folder: string, files: ReadonlyArray<string>) => {
  const file = join(folder, "shell.sqlite")
  const imports = files.map((path, n) => `.import "${path}" t${n}`)
  const run = () => {
    rmSync(file, { force: true })
    const { status, stderr } = spawnSync("sqlite3", [file, ".mode csv", ...imports])
    if (status !== 0) throw new Error(`no sqlite3: ${String(stderr).slice(-400)}`)
  }
  return timed("sqlite3 .import", run)
}

const imports = async (folder: string, files: ReadonlyArray<string>, rounds: number) => {
  const environment = { ...process.env, ALMANAC_DATA_DIR: folder }
  const almanac = () => runVerb("carriers", ["import", ...files], environment)
  const seats = [timed("almanac", almanac), shellImport(folder, files)]
  const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
  return interleave(seats, effort, rounds, folder)
}

const searches = async (folder: string, rounds: number, scope: Scope.Scope) => {
  const path = join(folder, "carriers.sqlite")
  const layer = Layer.build(registryMirror({ path }))
  const { search } = Context.get(await Effect.runPromise(Scope.provide(layer, scope)), Registry)
  const file = new Sqlite(path, { readonly: true })
  const scan = file.prepare(
    `select key / ${dot_limit}, name from carrier
     where key >= ${range.start} * ${dot_limit} and key < ${range.end + 1} * ${dot_limit}
     order by key`,
  )
  const count = scan.raw().all().length
  const searched = (format: (typeof formats)[number]) => async () => {
    let found = 0
    const pieces = search(range, format)
    await Effect.runPromise(
      Stream.runForEach(pieces, (piece) => Effect.sync(() => (found = piece.found))),
    )
    if (found !== count) throw new Error(`${found} of ${count} carriers`)
  }
  const seats = [
    timed("almanac", searched("ndjson")),
    ...formats
      .filter((format) => format !== "ndjson")
      .map((format) => timed(`almanac, ${format}`, searched(format))),
    timed("bare scan, all()", () => void scan.raw().all()),
    timed("bare scan, all(), objects", () => void scan.raw(false).all()),
    timed("bare scan, iterate()", () => {
      let rows = 0
      for (const row of scan.raw().iterate()) rows += row === undefined ? 0 : 1
      if (rows !== count) throw new Error("not all")
    }),
  ]
  const measured = await interleave(
    seats,
    { in_flight: 1, seconds: 0, runs_max: 1 },
    rounds,
    folder,
  )
  file.close()
  return { measured, count }
}

export const mirror: Suite = async ({ folder, rounds, onEnd }) => {
  const files = await writeFiles(join(folder, "files"), seed, dockets)
  const imported = await imports(folder, files, rounds)
  const scope = Effect.runSync(Scope.make())
  onEnd(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const searched = await orSkip("searches", () => searches(folder, rounds, scope))
  const tables = [
    `${rounds} imports each of two million dockets (legacy, and one in fifteen in Motus too), ` +
      "interleaved, after one discarded. almanac is the whole command, from start to exit.",
    table(imported, { rate: "imports/s", per_run: 1, ours: "almanac", latency: true }),
  ]
  if (searched === undefined) return [await machine(folder, [imported], []), ...tables].join("\n\n")
  const { measured, count } = searched
  return [
    await machine(folder, [imported, measured], []),
    ...tables,
    `A search of a million numbers with ${count.toLocaleString("en-US")} carriers, as bytes in ` +
      "the calling thread, against a bare scan of the same rows by better-sqlite3 in process, " +
      "without formatting.",
    table(measured, { rate: "searches/s", per_run: 1, ours: "almanac", latency: true }),
  ].join("\n\n")
}
