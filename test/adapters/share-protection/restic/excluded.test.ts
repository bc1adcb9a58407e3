/** Files that a backup's patterns excluded, with a real restic: a restore never touches them. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Engine, FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { folderOf, readTree, type Tree, writeTree } from "../../../world/folder.ts"
import { describeWithRestic, restic } from "../../../world/programs/restic.ts"
import {
  quiet,
  removeRepository,
  repository,
  withRepository,
} from "../../../world/share-protection/restic/fake.ts"

afterAll(removeRepository)

interface Patterns {
  readonly include_patterns?: ReadonlyArray<string>
  readonly exclude_patterns?: ReadonlyArray<string>
}

const none = { include_patterns: [], exclude_patterns: [] }

/** The paths that a plan would delete; they must match the deletions of the restore. */
const restoreInPlace = Effect.fnUntraced(function* (
  engine: Engine["Service"],
  folder: Omit<FolderRestore, "is_exact">,
) {
  const exact = { ...folder, is_exact: true }
  const { actions } = yield* engine.plan(repository, exact)
  const before = Object.keys(yield* readTree(folder.path))
  yield* engine.restore(repository, exact, quiet)
  const after = yield* readTree(folder.path)
  const deleted = actions.flatMap(({ action, path }) => (action === "deleted" ? [path] : []))
  const gone = before.filter((name) => !(name in after)).map((name) => `/${name}`)
  for (const path of gone) assert.include(deleted, path)
  for (const path of deleted) assert.notProperty(after, path.slice(1))
  return { deleted, after }
})

/** A snapshot as earlier releases made it, without a record of its patterns. */
const oldSnapshot = (
  folder: string,
  path: string,
  words: ReadonlyArray<string>,
  input = "",
): string => {
  const place = `${folder}/${repository.bucket}`
  const password = Redacted.value(repository.password)
  const result = execFileSync(restic, ["-r", place, "backup", "--json", ...words], {
    cwd: path,
    input,
    encoding: "utf8",
    env: { ...process.env, RESTIC_PASSWORD: password, RESTIC_CACHE_DIR: `${folder}/cache` },
  })
  const [, id = ""] = /"snapshot_id":"([0-9a-f]{64})"/.exec(result) ?? []
  return id
}

const live: Tree = {
  "a.txt": "a",
  "a.tmp": "a",
  "home/b.txt": "b",
  "home/cache/x": "x",
  "node_modules/m": "m",
  "only/y.tmp": "y",
}

/** Changes after the backup: new files, some of which the patterns would also exclude. */
const later: Tree = {
  "new.txt": "new",
  "new.tmp": "new",
  "home/new.txt": "new",
  "home/new.tmp": "new",
  "fresh/deep/z.tmp": "z",
  "fresh/z.txt": "z",
  "gone/z.txt": "z",
}

const cases: ReadonlyArray<
  readonly [
    what: string,
    patterns: Patterns,
    sub_path: string | null,
    deleted: ReadonlyArray<string>,
  ]
> = [
  [
    "what is excluded, and a new folder that holds some of it",
    { exclude_patterns: ["*.tmp", "node_modules", "/home/cache"] },
    null,
    ["/gone", "/gone/z.txt", "/home/new.txt", "/new.txt"],
  ],
  ["what is excluded in a subtree", { exclude_patterns: ["*.tmp"] }, "/home", ["/home/new.txt"]],
  [
    "what is not included",
    { include_patterns: ["/home"] },
    null,
    ["/home/new.tmp", "/home/new.txt"],
  ],
  [
    "what is excluded of what is included",
    { include_patterns: ["/home", "/a.txt"], exclude_patterns: ["*.tmp", "cache"] },
    null,
    ["/home/new.txt"],
  ],
  [
    "what is not included in a subtree",
    { include_patterns: ["b.txt", "new.*"], exclude_patterns: ["/home/*.tmp"] },
    "/home",
    ["/home/new.txt"],
  ],
  ["everything where nothing was included", { include_patterns: ["*.none"] }, null, []],
]

describeWithRestic("a restore in place by restic", () => {
  for (const [what, patterns, sub_path, expected] of cases) {
    it.live(`leaves alone ${what}`, () =>
      withRepository((engine) =>
        Effect.gen(function* () {
          const path = yield* folderOf(live)
          const options = { path, host: "share", tags: [], ...none, ...patterns }
          const { engine_snapshot_id } = yield* engine.backup(repository, options, quiet)
          yield* writeTree(path, later)
          const folder = { engine_snapshot_id, path, sub_path }
          const { deleted, after } = yield* restoreInPlace(engine, folder)
          assert.deepEqual(deleted, expected)
          const kept = Object.keys({ ...live, ...later }).filter(
            (name) => !expected.includes(`/${name}`),
          )
          assert.sameMembers(Object.keys(after), kept)
        }),
      ),
    )
  }

  it.live("leaves alone what is excluded in a new folder whose name is no UTF-8", () =>
    withRepository((engine) =>
      Effect.gen(function* () {
        const path = yield* folderOf(live)
        const options = { path, host: "share", tags: [], ...none, exclude_patterns: ["*.tmp"] }
        const { engine_snapshot_id } = yield* engine.backup(repository, options, quiet)
        const [fresh, gone] = ["für", "ünd"].map((name) =>
          Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name, "latin1")]),
        )
        assert(fresh !== undefined && gone !== undefined)
        for (const folder of [fresh, gone]) mkdirSync(folder)
        const temporary = Buffer.concat([fresh, Buffer.from("/z.tmp")])
        writeFileSync(temporary, "z")
        const exact = { engine_snapshot_id, path, sub_path: null, is_exact: true }
        assert.equal((yield* engine.plan(repository, exact)).deleted, 1)
        yield* engine.restore(repository, exact, quiet)
        assert.deepEqual([existsSync(temporary), existsSync(gone)], [true, false])
      }),
    ),
  )

  it.live("hides the tag that holds the patterns", () =>
    withRepository((engine) =>
      Effect.gen(function* () {
        const path = yield* folderOf(live)
        const options = { path, host: "share", ...none, exclude_patterns: ["a,b", "ö*"] }
        yield* engine.backup(repository, { ...options, tags: ["backup=one"] }, quiet)
        const [snapshot] = yield* engine.snapshots(repository)
        assert.deepEqual(snapshot?.tags, ["backup=one"])
      }),
    ),
  )

  for (const [what, words, input, expected] of [
    ["without a policy deletes as before", ["."], "", ["/new.txt", "/x.tmp"]],
    [
      "of a policy without patterns deletes as before",
      ["--tag=policy=p", "."],
      "",
      ["/new.txt", "/x.tmp"],
    ],
    [
      "of a policy keeps the excluded files of restic",
      ["--tag=policy=p", "--exclude=%/**/*.tmp", "."],
      "",
      ["/new.txt"],
    ],
    [
      "of a policy that included something deletes nothing",
      ["--tag=policy=p", "--files-from-raw=-"],
      "./home\0",
      [],
    ],
    [
      "of a policy that included a deep file deletes nothing",
      ["--tag=policy=p", "--files-from-raw=-"],
      "./home/b.txt\0",
      [],
    ],
  ] as const) {
    it.live(`by a snapshot of an earlier release ${what}`, () =>
      withRepository((engine, folder) =>
        Effect.gen(function* () {
          const path = yield* folderOf({ "a.txt": "a", "home/b.txt": "b" })
          const args = words.map((word) => word.replace("%", path))
          const engine_snapshot_id = oldSnapshot(folder, path, args, input)
          yield* writeTree(path, { "new.txt": "new", "x.tmp": "x" })
          const restore = { engine_snapshot_id, path, sub_path: null }
          const { deleted } = yield* restoreInPlace(engine, restore)
          assert.deepEqual(deleted, [...expected])
        }),
      ),
    )
  }

  it.live("by an earlier release's snapshot of nothing, of a policy, empties no share", () =>
    withRepository((engine, folder) =>
      Effect.gen(function* () {
        const nothing = `${folder}/nothing`
        mkdirSync(`${nothing}/.almanac-empty-folder`, { recursive: true })
        const engine_snapshot_id = oldSnapshot(folder, nothing, ["--tag=policy=p", "."])
        const path = yield* folderOf(live)
        const restore = { engine_snapshot_id, path, sub_path: null }
        const { deleted, after } = yield* restoreInPlace(engine, restore)
        assert.deepEqual([deleted, after], [[], live])
      }),
    ),
  )
})
