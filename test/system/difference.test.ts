import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer, Result, Runtime } from "effect"
import { host } from "#actors/host.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { exclusive } from "#server/session.ts"
import { sqlite } from "#sqlite"
import { almanac } from "../cli/comparing.ts"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"
import { given } from "../world/settings-given.ts"
import { count, emptyLog } from "../world/system/sealed.ts"

/** Modifies the file of a read model from outside. */
const spoil = (folder: string, ...statements: ReadonlyArray<string>) => {
  const name = readdirSync(folder).find((one) => /^system\.v\d+\.sqlite$/.test(one)) ?? ""
  const file = new Sqlite(join(folder, name))
  for (const statement of statements) file.exec(statement)
  file.close()
}

const withModel = <A, E>(
  body: (model: SystemModel["Service"], folder: string) => Effect.Effect<A, E>,
) =>
  Effect.gen(function* () {
    for (let i = 1; i <= 9; i++) yield* count("a", i)
    const folder = yield* temporaryFolder
    const models = SystemModel.layer([]).pipe(Layer.provide(sqlite(folder)))
    return yield* Effect.provide(
      Effect.flatMap(SystemModel, (model) => body(model, folder)),
      models,
    )
  }).pipe(Effect.scoped, Effect.provide(emptyLog))

/** The audit's key of an event, derived from its position. */
const place = (position: number) => ({ place: position * 2 ** 16 })

describe("a read model and its rebuild", () => {
  it.live("are the same, and nothing is left of the comparison", () =>
    withModel(({ difference }, folder) =>
      Effect.gen(function* () {
        const found = yield* difference
        assert.deepEqual([found.position, found.count, found.rows], [9, 0, []])
        assert.isAtLeast(found.tables, 3)
        assert.isEmpty(readdirSync(folder).filter((name) => name.includes("building")))
      }),
    ),
  )

  it.live("differ where a row was changed, removed or added, by key and column", () =>
    withModel(({ difference, position }, folder) =>
      Effect.gen(function* () {
        spoil(
          folder,
          `update system_audit_event set actor = 'mallory' where place = ${place(3).place}`,
          `delete from system_audit_event where place = ${place(5).place}`,
          "insert into system_audit_hour values (1, 2, 3)",
        )
        const { count: counted, rows } = yield* difference
        assert.equal(counted, 3)
        assert.deepEqual(rows, [
          {
            table: "system_audit_event",
            key: place(3),
            kind: "changed",
            columns: [{ column: "actor", kept: "mallory", rebuilt: "test" }],
          },
          { table: "system_audit_event", key: place(5), kind: "missing", columns: [] },
          { table: "system_audit_hour", key: { hour: 1 }, kind: "extra", columns: [] },
        ])
        // The difference is reported, not repaired.
        assert.equal((yield* difference).count, 3)
        assert.equal(yield* position, 9)
      }),
    ),
  )

  it.live("list their first hundred differing rows, and count all", () =>
    withModel(({ difference }, folder) =>
      Effect.gen(function* () {
        const many =
          "with recursive n(i) as (values(1) union all select i + 1 from n where i < 250)"
        spoil(folder, `${many} insert into system_audit_hour select i, 1, 1 from n`)
        const { count: counted, rows } = yield* difference
        assert.deepEqual([counted, rows.length], [250, 100])
      }),
    ),
  )

  it.live("are compared at one position, despite concurrent writes", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const models = SystemModel.layer([]).pipe(Layer.provide(sqlite(folder)))
      yield* Effect.provide(
        Effect.gen(function* () {
          const { difference } = yield* SystemModel
          yield* Effect.forkScoped(
            Effect.forEach(
              Array.from({ length: 3000 }, (_, i) => i + 1),
              (i) => Effect.andThen(count("a", i), i % 10 === 0 ? Effect.sleep(1) : Effect.void),
            ),
          )
          let last = 0
          for (let i = 0; i < 4; i++) {
            const found = yield* difference
            assert.deepEqual(found.rows, [])
            assert.isAtLeast(found.position, last)
            last = found.position
          }
          assert.isAbove(last, 0)
        }),
        models,
      )
    }).pipe(Effect.scoped, Effect.provide(emptyLog)),
  )
})

describeWithServer("rebuild --diff and audit diff", () => {
  it.live("report their differences and end with code 1; a rebuild fixes them", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const settings = given({ data: { dir: folder } })
      yield* Effect.provide(
        Effect.forEach([1, 2, 3], (i) => count("a", i)),
        Layer.provide(host, exclusive(settings)),
        { local: true },
      )
      const verb = (...args: ReadonlyArray<string>) =>
        almanac("--set", `data.dir=${folder}`, ...args)

      const whole = yield* verb("rebuild", "--diff", "system")
      assert.equal(whole.value._tag, "Success")
      assert.match(whole.out[0] ?? "", /^system: matches the log, \d tables at position 3$/)

      const kept = join(folder, "read-models")
      spoil(
        kept,
        `update system_audit_event set type = 'X' || char(27) where place = ${place(2).place}`,
      )
      for (const words of [
        ["rebuild", "--diff"],
        ["audit", "diff"],
      ]) {
        const { value, out } = yield* verb(...words, "system")
        assert.isTrue(Result.isFailure(value) && Runtime.getErrorExitCode(value.failure) === 1)
        assert.include(out[0], "system: 1 rows differ")
        assert.include(out[0], `changed system_audit_event {"place":131072} type is "X`)
        assert.include(out[0], 'but "Counted" in the log')
        assert.notInclude(out[0], "\u001b")
      }
      const program = yield* verb("audit", "diff", "--json", "system")
      assert.equal(JSON.parse(program.out[0] ?? "").count, 1)
      yield* verb("rebuild", "system")
      assert.equal((yield* verb("audit", "diff", "system")).value._tag, "Success")
      const none = yield* verb("audit", "diff", "nothing")
      assert.isTrue(Result.isFailure(none.value))
    }).pipe(Effect.scoped),
  )
})
