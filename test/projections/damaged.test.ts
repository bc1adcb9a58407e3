/** Read models whose file SQLite reports as damaged, at startup and in use. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, type Scope } from "effect"
import type { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import type { Log, LogUnavailable } from "#events/log.ts"
import { logMemory } from "#journal"
import type { DatabaseUnusable } from "#projections/database.ts"
import { type ReadModel, readModel } from "#projections/read-model.ts"
import type { Behind } from "#projections/waiters.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../world/programs/nats.ts"
import { until } from "../world/server/server.ts"
import { blueprint, count, type Tables } from "./counters.ts"

/** The file is checked every two seconds; a rebuild of a few rows is short. */
const noticed_ms_max = 20_000
const page_bytes = 4096

interface Given {
  readonly path: string
  readonly opened: Effect.Effect<
    ReadModel<Tables>,
    Behind | LogUnavailable | DatabaseUnusable,
    Log | Scope.Scope
  >
  readonly lines: ReadonlyArray<string>
}

/** A model of a counter that was closed cleanly; its file is `path`. */
const given = <A, E>(body: (given: Given) => Effect.Effect<A, E, Log | Commands | Scope.Scope>) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const messages: Array<string> = []
    const heard = Logger.layer([Logger.make(({ message }) => messages.push(String(message)))])
    const databases = Layer.provideMerge(sqlite(folder), heard)
    const opened = Effect.provide(readModel(blueprint), databases, { local: true })
    yield* count("x", 2)
    yield* Effect.scoped(opened)
    const path = join(folder, `${blueprint.service}.v${blueprint.version}.sqlite`)
    assert.isTrue(existsSync(path))
    return yield* body({ path, opened, lines: messages })
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(host, logMemory)))

const rowsOf = ({ db }: ReadModel<Tables>) =>
  Effect.promise(() => db.selectFrom("counter").select(["id", "total"]).execute())

/** Overwrites every page except the first `kept`. */
const spoil = (path: string, kept: number) => {
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0xa5, kept * page_bytes))
  return bytes
}

const assertAside = ({ path, lines }: Given, bytes: Buffer) => {
  assert.deepEqual(readFileSync(`${path}.damaged`), bytes)
  const [moved = "", ...more] = lines.filter((line) => line.includes(".damaged"))
  assert.deepEqual(more, [])
  assert.include(moved, `It was moved to ${path}.damaged and will be rebuilt from the log.`)
}

describe("a read model's file that SQLite calls damaged", () => {
  const damages: ReadonlyArray<readonly [string, (path: string) => Buffer]> = [
    ["that is no database", (path) => spoil(path, 0)],
    ["whose pages are overwritten", (path) => spoil(path, 1)],
  ]
  for (const [what, damage] of damages) {
    it.live(`${what} is set aside at startup, logged, and rebuilt`, () =>
      given((world) =>
        Effect.gen(function* () {
          const bytes = damage(world.path)
          const model = yield* world.opened
          assertAside(world, bytes)
          assert.deepEqual(yield* rowsOf(model), [{ id: "x", total: 2 }])
          yield* model.waitFor(yield* count("x", 1))
          assert.deepEqual(yield* rowsOf(model), [{ id: "x", total: 3 }])
        }),
      ),
    )
  }

  it.live("is set aside when startup catches up with the log", () =>
    given((world) =>
      Effect.gen(function* () {
        // Keeps the schema's page and the checkpoint's.
        const bytes = spoil(world.path, 2)
        yield* count("x", 1)
        const model = yield* world.opened
        assertAside(world, bytes)
        assert.deepEqual(yield* rowsOf(model), [{ id: "x", total: 3 }])
      }),
    ),
  )

  it.live("is set aside when a query finds the damage, and rebuilt within seconds", () =>
    given((world) =>
      Effect.gen(function* () {
        const bytes = spoil(world.path, 2)
        const model = yield* world.opened
        for (const db of [model.db, model.reader]) {
          const pending = Effect.promise(() => db.selectFrom("counter").selectAll().execute())
          assert.isTrue(Exit.isFailure(yield* Effect.exit(pending)))
        }
        yield* Effect.promise(() =>
          until("the counter is there again", noticed_ms_max, () => existsSync(world.path)),
        )
        yield* model.waitFor(yield* count("x", 1))
        assert.deepEqual(yield* rowsOf(model), [{ id: "x", total: 3 }])
        assertAside(world, bytes)
      }),
    ),
  )

  it.live("takes the place of the one that was set aside before", () =>
    given((world) =>
      Effect.gen(function* () {
        writeFileSync(`${world.path}.damaged`, "before")
        writeFileSync(`${world.path}.damaged-wal`, "before")
        const bytes = spoil(world.path, 0)
        yield* world.opened
        assertAside(world, bytes)
        assert.isFalse(existsSync(`${world.path}.damaged-wal`))
      }),
    ),
  )
})

describe("a read model's file that cannot be opened for another reason", () => {
  it.live.skipIf(process.getuid?.() === 0)("stops the start, and stays: permissions", () =>
    given(({ path, opened }) =>
      Effect.gen(function* () {
        chmodSync(path, 0)
        assert.include(String(yield* Effect.flip(opened)), `${path}`)
        assert.isFalse(existsSync(`${path}.damaged`))
      }),
    ),
  )

  it.live("is a folder: startup fails with one line and leaves it untouched", () =>
    given(({ path, opened, lines }) =>
      Effect.gen(function* () {
        rmSync(path)
        mkdirSync(path)
        const { message } = yield* Effect.flip(opened)
        assert.match(message, /cannot be used as a database: [^\n]*\.$/)
        assert.isTrue(existsSync(path))
        assert.isFalse(existsSync(`${path}.damaged`))
        assert.deepEqual(lines, [])
      }),
    ),
  )
})
