/** Behavior that the engine contract does not cover: restic with real files and no server. */
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type Engine, EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { folderOf, readTree, type Tree, writeTree } from "../../../world/folder.ts"
import { describeWithRestic } from "../../../world/programs/restic.ts"
import {
  removeRepository,
  repository,
  withRepository,
} from "../../../world/share-protection/restic/fake.ts"

afterAll(removeRepository)

const quiet = () => Effect.void
const nothing = { host: "share", tags: [], include_patterns: [], exclude_patterns: [] }

/** A new repository in a folder, and a snapshot of the tree. */
const withSnapshot = <A, E>(
  path: string,
  patterns: { include_patterns?: ReadonlyArray<string>; exclude_patterns?: ReadonlyArray<string> },
  body: (engine: Engine["Service"], id: string) => Effect.Effect<A, E, Scope.Scope>,
) =>
  withRepository((engine) =>
    Effect.gen(function* () {
      const made = yield* engine.backup(repository, { path, ...nothing, ...patterns }, quiet)
      assert.isFalse(made.partial)
      return yield* body(engine, made.engine_snapshot_id)
    }),
  )

const odd: Tree = {
  "new\nline": "1",
  "!bang": "2",
  "-dash": "3",
  "--delete": "4",
  "back\\slash": "5",
  $HOME: "6",
  " blank ": "7",
  "[a]*?": "8",
  "#hash": "9",
  "sub [1]/deep\nname": "10",
  "sub [1]/x": "11",
  "sub 1/x": "12",
}

describeWithRestic("restic in a folder", () => {
  it.live("finds odd names by patterns, and restores each by its path", () =>
    Effect.gen(function* () {
      // The share's folder has a name that looks like a pattern, and a parent whose name is one of
      // the patterns.
      const root = yield* folderOf({ "home/[share] *": null })
      const path = `${root}/home/[share] *`
      yield* writeTree(path, odd)
      const include_patterns = [
        "home",
        "!bang",
        "-dash",
        "--delete",
        "/new*",
        String.raw`/sub \[1]`,
      ]
      const wanted = ["new\nline", "!bang", "-dash", "--delete", "sub [1]/x"]
      const patterns = { include_patterns, exclude_patterns: ["deep*", "/x", "home"] }
      yield* withSnapshot(path, patterns, (engine, engine_snapshot_id) =>
        Effect.gen(function* () {
          const to = yield* folderOf({})
          const all = { engine_snapshot_id, path: to, sub_path: null, is_exact: false }
          yield* engine.restore(repository, all, quiet)
          const expected = Object.fromEntries(wanted.map((name) => [name, odd[name]]))
          assert.deepEqual(yield* readTree(to), expected)
          rmSync(`${to}/new\nline`)
          yield* engine.restore(repository, { ...all, sub_path: "/new\nline" }, quiet)
          assert.deepEqual(yield* readTree(to), expected)
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live("never leaves the share by a link that was put in its place", () =>
    Effect.gen(function* () {
      const path = yield* folderOf({ "home/u1/a.txt": "a" })
      yield* withSnapshot(path, {}, (engine, engine_snapshot_id) =>
        Effect.gen(function* () {
          const outside = yield* folderOf({ keep: "kept" })
          const share = yield* folderOf({})
          symlinkSync(outside, `${share}/home`)
          const restore = { engine_snapshot_id, path: share, sub_path: "/home/u1", is_exact: true }
          for (const call of [
            engine.restore(repository, restore, quiet),
            engine.plan(repository, restore),
          ]) {
            const failure = yield* Effect.flip<unknown, unknown, never>(call)
            assert(failure instanceof EngineFailed)
            assert.isTrue(failure.wrote_nothing)
          }
          const whole = { ...restore, sub_path: null }
          const plan = yield* engine.plan(repository, whole)
          assert.deepInclude(plan.actions, { action: "updated", path: "/home" })
          yield* engine.restore(repository, whole, quiet)
          assert.deepEqual(yield* readTree(outside), { keep: "kept" })
          assert.deepEqual(yield* readTree(share), { "home/u1/a.txt": "a" })
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live("keeps hard links, pipes and times; and plans what became of another kind", () =>
    Effect.gen(function* () {
      const path = yield* folderOf({ "a.txt": "a", "b.txt": "b", link: "->a.txt", "d/x": "x" })
      linkSync(`${path}/a.txt`, `${path}/hard`)
      yield* withSnapshot(path, {}, (engine, engine_snapshot_id) =>
        Effect.gen(function* () {
          const to = yield* folderOf({})
          const exact = { engine_snapshot_id, path: to, sub_path: null, is_exact: true }
          yield* engine.restore(repository, exact, quiet)
          assert.equal(lstatSync(`${to}/hard`).ino, lstatSync(`${to}/a.txt`).ino)
          for (const name of ["a.txt", "link", "d"]) {
            assert.equal(lstatSync(`${to}/${name}`).mtimeMs, lstatSync(`${path}/${name}`).mtimeMs)
          }
          assert.deepEqual((yield* engine.plan(repository, exact)).actions, [])
          for (const name of ["b.txt", "link", "d"]) rmSync(`${to}/${name}`, { recursive: true })
          mkdirSync(`${to}/b.txt/in`, { recursive: true })
          symlinkSync("b.txt", `${to}/link`)
          yield* writeTree(to, { d: "a file" })
          const { actions, unchanged } = yield* engine.plan(repository, exact)
          assert.deepEqual(actions, [
            { action: "updated", path: "/b.txt" },
            { action: "deleted", path: "/b.txt/in" },
            { action: "updated", path: "/d" },
            { action: "created", path: "/d/x" },
            { action: "updated", path: "/link" },
          ])
          assert.equal(unchanged, 2)
          yield* engine.restore(repository, exact, quiet)
          assert.equal(readFileSync(`${to}/d/x`, "utf8"), "x")
          assert.deepEqual((yield* engine.plan(repository, exact)).actions, [])
        }),
      )
    }).pipe(Effect.scoped),
  )

  for (const [include_patterns, exclude_patterns, expected] of [
    [["*"], ["node_modules"], ["a.txt", "b.tmp", "d/c.tmp"]],
    [["*.txt", "*.tmp"], ["*.tmp"], ["a.txt"]],
    [["*.txt", "*.tmp"], ["/*.tmp"], ["a.txt", "d/c.tmp"]],
    [["m", "a.txt"], ["**/node_modules"], ["a.txt"]],
    [["*.tmp"], ["d/*", "/b*"], []],
  ] as const) {
    it.live(`has of ${include_patterns.join()} nothing that is ${exclude_patterns.join()}`, () =>
      Effect.gen(function* () {
        const files = { "a.txt": "a", "b.tmp": "b", "node_modules/m": "m", "d/c.tmp": "c" }
        const path = yield* folderOf(files)
        const patterns = { include_patterns, exclude_patterns }
        yield* withSnapshot(path, patterns, (engine, engine_snapshot_id) =>
          Effect.gen(function* () {
            const to = yield* folderOf({})
            const restore = { engine_snapshot_id, path: to, sub_path: null, is_exact: false }
            yield* engine.restore(repository, restore, quiet)
            assert.sameMembers(Object.keys(yield* readTree(to)), [...expected])
          }),
        )
      }).pipe(Effect.scoped),
    )
  }

  it.live("makes a snapshot of a folder of which nothing is included", () =>
    Effect.gen(function* () {
      const path = yield* folderOf({ "a.txt": "a" })
      const patterns = { include_patterns: ["*.none"] }
      yield* withSnapshot(path, patterns, (engine, engine_snapshot_id) =>
        Effect.gen(function* () {
          const to = yield* folderOf({})
          const restore = { engine_snapshot_id, path: to, sub_path: null, is_exact: false }
          const done = yield* engine.restore(repository, restore, quiet)
          assert.deepEqual([done, yield* readTree(to)], [{ files: 0, bytes: 0 }, {}])
        }),
      )
    }).pipe(Effect.scoped),
  )
})
