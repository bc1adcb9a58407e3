import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import type { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { Databases, type Design } from "#projections/database.ts"
import { type Blueprint, readModel } from "#projections/read-model.ts"
import { sqlite } from "#sqlite"
import { blueprint, closed, count, counted } from "./counters.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true })),
)

const inFolder = <A, E>(
  body: (path: string) => Effect.Effect<A, E, Log | Commands | Scope.Scope>,
) =>
  folder.pipe(
    Effect.flatMap(body),
    Effect.scoped,
    Effect.provide(Layer.provideMerge(host, logMemory)),
  )

const opened = <T>(path: string, of: Blueprint<T>) =>
  Effect.provide(readModel(of), sqlite(path), { local: true })

describe("a statement", () => {
  it("is compiled once and binds named values and constants in their places", () => {
    assert.deepEqual(closed({ id: "x" }), {
      sql: 'update "counter" set "state" = ? where "id" = ?',
      parameters: ["closed", "x"],
    })
    assert.deepEqual(counted({ id: "x", by: 3 }).parameters, ["x", 3, "open"])
  })
})

describe("a read model", () => {
  it.live("shows everything in the log at opening", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        yield* count("x", 2)
        yield* count("x", 3)
        const { db } = yield* opened(path, blueprint)
        const rows = yield* Effect.promise(() => db.selectFrom("counter").selectAll().execute())
        assert.deepEqual(rows, [{ id: "x", total: 5, state: "open" }])
      }),
    ),
  )

  it.live("shows a command's result once its position is reached", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const model = yield* opened(path, blueprint)
        for (let i = 1; i <= 50; i++) {
          yield* model.waitFor(yield* count("x", 1))
          const row = yield* Effect.promise(() =>
            model.db.selectFrom("counter").selectAll().executeTakeFirst(),
          )
          assert.equal(row?.total, i)
        }
      }),
    ),
  )

  it.live("fails when a position is not reached", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const model = yield* opened(path, blueprint)
        const behind = yield* Effect.flip(model.waitFor(99))
        assert.equal(behind._tag, "Behind")
      }),
    ),
  )

  it.live("resumes at its checkpoint when reopened", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        yield* count("x", 1)
        const first = yield* Effect.scoped(
          Effect.flatMap(opened(path, blueprint), (m) => m.position),
        )
        assert.equal(first, 1)
        yield* count("x", 1)
        const { db } = yield* opened(path, blueprint)
        const row = yield* Effect.promise(() =>
          db.selectFrom("counter").selectAll().executeTakeFirst(),
        )
        assert.equal(row?.total, 2)
      }),
    ),
  )

  it.live("equals its rebuild, also while commands go on", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const model = yield* opened(path, blueprint)
        const writing = Effect.forEach(
          Array.from({ length: 300 }, (_, i) => i),
          (i) => count(`c${i % 7}`, i),
          { concurrency: 4 },
        )
        const rebuilding = Effect.repeat(model.rebuild, { times: 5 })
        const [positions] = yield* Effect.all([writing, rebuilding], { concurrency: 2 })
        yield* model.waitFor(Math.max(...positions))
        const before = yield* model.dump
        yield* model.rebuild
        assert.deepEqual(yield* model.dump, before)
        const rows = yield* Effect.promise(() =>
          model.reader.selectFrom("counter").select("total").execute(),
        )
        const sum = rows.reduce((total, row) => total + row.total, 0)
        assert.equal(sum, (299 * 300) / 2)
      }),
    ),
  )

  it.live("is rebuilt when the version of its tables changes", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        yield* count("x", 1)
        yield* Effect.scoped(opened(path, blueprint))
        const { db } = yield* opened(path, { ...blueprint, version: 2 })
        const rows = yield* Effect.promise(() => db.selectFrom("counter").selectAll().execute())
        assert.equal(rows[0]?.total, 1)
      }),
    ),
  )

  it.live("is rebuilt when it belongs to another log", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const fill = (by: number) =>
        Effect.gen(function* () {
          yield* count("x", by)
          const { db } = yield* opened(path, blueprint)
          return yield* Effect.promise(() => db.selectFrom("counter").selectAll().execute())
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))))
      assert.equal((yield* fill(1))[0]?.total, 1)
      assert.equal((yield* fill(7))[0]?.total, 7)
    }).pipe(Effect.scoped),
  )

  it.live("queries in a thread of its own, which only reads", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const { reader } = yield* opened(path, blueprint)
        const written = yield* Effect.result(
          Effect.tryPromise(() => reader.deleteFrom("counter").execute()),
        )
        assert.equal(written._tag, "Failure")
      }),
    ),
  )

  it.live("queries the replaced tables, even during concurrent queries", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const { reader, rebuild, waitFor } = yield* opened(path, blueprint)
        const total = Effect.promise(() =>
          reader.selectFrom("counter").select("total").executeTakeFirst(),
        )
        const asking = Effect.forever(total)
        yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkScoped(asking), { discard: true })
        for (let i = 1; i <= 20; i++) {
          yield* waitFor(yield* count("x", 1))
          assert.deepEqual(yield* total, { total: i })
          yield* rebuild
          assert.deepEqual(yield* total, { total: i })
        }
      }),
    ),
  )

  it.effect("finds that its file is gone though it could not be looked for once", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const databases = yield* Effect.provide(Databases, sqlite(path), { local: true })
        let looks = 0
        const failing = Databases.of({
          open: <T>(design: Design<T>) =>
            Effect.map(databases.open(design), (database) => ({
              ...database,
              place: () => {
                if (++looks === 1) throw new Error("EACCES")
                return database.place()
              },
            })),
        })
        yield* Effect.provideService(readModel(blueprint), Databases, failing)
        const file = join(path, "test.v1.sqlite")
        rmSync(file)
        yield* TestClock.adjust("2 seconds")
        yield* TestClock.adjust("2 seconds")
        for (let i = 0; i < 1_000 && !existsSync(file); i++) yield* Effect.promise(setImmediate)
        assert.isTrue(existsSync(file))
      }),
    ),
  )
})
