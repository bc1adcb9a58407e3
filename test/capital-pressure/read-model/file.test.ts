/** The dashboard's file at a configured path, where others read, delete or replace it. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer, type Scope } from "effect"
import { Observation } from "#actors/capital-pressure/observation.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import type { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { blueprint } from "#projections/capital-pressure/blueprint.ts"
import { readModel } from "#projections/read-model.ts"
import { ObserveMetric } from "#schemas/capital-pressure/observation.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { until } from "../../world/server/server.ts"

/** The file is checked every two seconds; a rebuild of a few rows is short. */
const noticed_ms_max = 20_000

const observe = Effect.fnUntraced(function* (ts: string, value: number) {
  const commands = yield* Commands
  const command_id = crypto.randomUUID()
  const command = ObserveMetric.make({ observations: [{ ts, value }], demo: false })
  const origin = { command_id, actor: "test", at: "2026-11-20T12:00:00.000Z" }
  return yield* commands.send(origin, address(Observation, "nfci-2026", command))
})

/** Runs the test with a folder, and a path for the file in a sibling folder. */
const inFolder = <A, E>(
  body: (path: string, folder: string) => Effect.Effect<A, E, Log | Commands | Scope.Scope>,
) =>
  temporaryFolder.pipe(
    Effect.flatMap((folder) => {
      const place = join(folder, "place")
      mkdirSync(place)
      return body(join(place, "capital.sqlite"), join(folder, "read-models"))
    }),
    Effect.scoped,
    Effect.provide(Layer.provideMerge(host, logMemory)),
  )

const opened = (path: string, folder: string, version = 1) =>
  Effect.provide(
    readModel({ ...blueprint, version }),
    sqlite(folder, new Map([["capital-pressure", path]])),
    { local: true },
  )

/** The contents for a reader that opens the file now. */
const read = (path: string) => {
  const file = new Sqlite(path, { readonly: true, fileMustExist: true })
  try {
    return {
      version: file.pragma("user_version", { simple: true }),
      journal: file.pragma("journal_mode", { simple: true }),
      values: file.prepare("select value from capital_observation order by day").pluck().all(),
    }
  } finally {
    file.close()
  }
}

/** Like `read`; undefined while the file is not readable. */
const readable = (path: string) => {
  try {
    return read(path)
  } catch {
    return undefined
  }
}

const noticed = (path: string, ...values: ReadonlyArray<number>) =>
  Effect.promise(() =>
    until(`${path} holds ${values.join()}`, noticed_ms_max, () => {
      const found = readable(path)?.values
      return found !== undefined && JSON.stringify(found) === JSON.stringify(values)
    }),
  )

describe("the dashboard's file", () => {
  it.live("is at its own path, in WAL, with its version in it, and others read it", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        yield* observe("2026-01-02", 1.5)
        const model = yield* opened(path, folder)
        assert.deepEqual(read(path), { version: 1, journal: "wal", values: [1.5] })
        yield* model.waitFor(yield* observe("2026-01-05", 2))
        assert.deepEqual(read(path).values, [1.5, 2])
        assert.deepEqual(readdirSync(folder), [])
      }),
    ),
  )

  it.live("continues at its position, and is rebuilt if it has another version", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        yield* observe("2026-01-02", 1)
        yield* Effect.scoped(opened(path, folder))
        const file = new Sqlite(path)
        // A value that only the file has reveals a rebuild.
        file.exec("update capital_observation set value = 7")
        file.close()
        yield* Effect.scoped(opened(path, folder))
        assert.deepEqual(read(path), { version: 1, journal: "wal", values: [7] })
        yield* Effect.scoped(opened(path, folder, 2))
        assert.deepEqual(read(path), { version: 2, journal: "wal", values: [1] })
        yield* Effect.scoped(opened(path, folder, 1))
        assert.deepEqual(read(path), { version: 1, journal: "wal", values: [1] })
      }),
    ),
  )

  it.live("takes an empty file, and removes what a rebuild did not finish", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        writeFileSync(path, "")
        writeFileSync(`${path}.building`, "half")
        yield* observe("2026-01-02", 1)
        yield* opened(path, folder)
        assert.deepEqual(read(path).values, [1])
        assert.isFalse(existsSync(`${path}.building`))
      }),
    ),
  )

  it.live("is rebuilt if only SQLite's side files are left", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        yield* observe("2026-01-02", 1)
        const beside = yield* Effect.scoped(
          Effect.map(opened(path, folder), () => readFileSync(`${path}-wal`)),
        )
        rmSync(path)
        writeFileSync(`${path}-wal`, beside)
        yield* opened(path, folder)
        assert.deepEqual(read(path).values, [1])
      }),
    ),
  )

  const foreign: ReadonlyArray<readonly [string, (path: string) => void]> = [
    ["no database at all", (path) => writeFileSync(path, "Dear diary,\n".repeat(100))],
    [
      "another program's database",
      (path) => {
        const file = new Sqlite(path)
        file.exec("create table bookmark (url text)")
        file.close()
      },
    ],
  ]
  for (const [what, make] of foreign) {
    it.live(`is not written over where it is ${what}: the start says so`, () =>
      inFolder((path, folder) =>
        Effect.gen(function* () {
          make(path)
          const before = readFileSync(path)
          const { _tag, message } = yield* Effect.flip(opened(path, folder))
          assert.equal(_tag, "DatabaseUnusable")
          assert.include(message, `${path} cannot be used as a database`)
          assert.notInclude(message, "\n")
          assert.deepEqual(readFileSync(path), before)
        }),
      ),
    )
  }

  it.live("at its default path is set aside with any contents, and rebuilt", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        writeFileSync(path, "Dear diary,\n".repeat(100))
        yield* observe("2026-01-02", 1)
        const databases = sqlite(folder, new Map([["capital-pressure", path]]), path)
        yield* Effect.provide(readModel({ ...blueprint, version: 1 }), databases, { local: true })
        assert.deepEqual(read(path).values, [1])
        assert.include(readFileSync(`${path}.damaged`, "utf8"), "Dear diary,")
      }),
    ),
  )

  it.live("says so where its folder does not exist, or it is a folder itself", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const nowhere = join(folder, "no", "capital.sqlite")
        const { message } = yield* Effect.flip(opened(nowhere, folder))
        assert.equal(message, `${nowhere} cannot be used as a database: its folder does not exist.`)
        mkdirSync(path)
        const other = yield* Effect.flip(opened(path, folder))
        assert.include(other.message, `${path} cannot be used as a database`)
      }),
    ),
  )

  it.live("equals its rebuild, which takes its place as a whole", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        yield* observe("2026-01-02", 1)
        yield* model.waitFor(yield* observe("2026-01-02", 3))
        const before = yield* model.dump
        yield* model.rebuild
        assert.deepEqual(yield* model.dump, before)
        assert.deepEqual(read(path), { version: 1, journal: "wal", values: [3] })
        assert.isFalse(existsSync(`${path}.building`))
        yield* model.waitFor(yield* observe("2026-01-05", 4))
        assert.deepEqual(read(path).values, [3, 4])
      }),
    ),
  )
})

describe("a dashboard's file that another program holds", () => {
  it.live("is written as soon as it can be, and read meanwhile", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        yield* model.waitFor(yield* observe("2026-01-02", 1))
        const other = new Sqlite(path)
        other.exec("begin immediate")
        const position = yield* observe("2026-01-05", 2)
        const { _tag } = yield* Effect.flip(model.waitFor(position))
        assert.equal(_tag, "Behind")
        assert.deepEqual(read(path).values, [1])
        other.exec("rollback")
        other.close()
        yield* noticed(path, 1, 2)
        yield* model.waitFor(yield* observe("2026-01-06", 3))
      }),
    ),
  )
})

describe("a dashboard's file that is taken away", () => {
  const remove = (path: string) => {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
  }

  it.live("is built again when something is to be written", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        yield* model.waitFor(yield* observe("2026-01-02", 1))
        // SQLite's own files next to it stay.
        rmSync(path)
        yield* model.waitFor(yield* observe("2026-01-05", 2))
        assert.deepEqual(read(path).values, [1, 2])
        yield* model.waitFor(yield* observe("2026-01-06", 3))
        assert.deepEqual(read(path).values, [1, 2, 3])
      }),
    ),
  )

  it.live("is built again within seconds though nothing is written", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        yield* model.waitFor(yield* observe("2026-01-02", 1))
        remove(path)
        yield* noticed(path, 1)
      }),
    ),
  )

  it.live("is built again over a copy of ours that was put in its place", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        yield* observe("2026-01-02", 1)
        yield* Effect.scoped(opened(path, folder))
        const old = readFileSync(path)
        const model = yield* opened(path, folder)
        yield* model.waitFor(yield* observe("2026-01-05", 2))
        remove(path)
        writeFileSync(`${path}.copy`, old)
        renameSync(`${path}.copy`, path)
        yield* noticed(path, 1, 2)
      }),
    ),
  )

  it.live("leaves what others put in its place, and is built again when that is gone", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        yield* model.waitFor(yield* observe("2026-01-02", 1))
        remove(path)
        writeFileSync(path, "Dear diary,\n")
        yield* model.waitFor(yield* observe("2026-01-05", 2))
        const { detail } = yield* Effect.flip(model.rebuild)
        assert.include(detail, "the file at its path is not a read model and is not overwritten")
        assert.equal(readFileSync(path, "utf8"), "Dear diary,\n")
        assert.isFalse(existsSync(`${path}.building`))
        rmSync(path)
        yield* noticed(path, 1, 2)
      }),
    ),
  )

  it.live("is built again when its folder is there again", () =>
    inFolder((path, folder) =>
      Effect.gen(function* () {
        const model = yield* opened(path, folder)
        const place = join(path, "..")
        renameSync(place, `${place}.moved`)
        yield* model.waitFor(yield* observe("2026-01-02", 1))
        mkdirSync(place)
        yield* noticed(path, 1)
        yield* model.waitFor(yield* observe("2026-01-05", 2))
        assert.deepEqual(read(path).values, [1, 2])
      }),
    ),
  )
})
