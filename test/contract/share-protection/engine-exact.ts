/** Contract of every Engine adapter for exact restores, their plans, and verification by sample. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Engine, planned_actions_max, type Sample } from "#actors/share-protection/ports/engine.ts"
import { emptyFolder, folderOf, readTree, type Tree, writeTree } from "../../world/folder.ts"
import {
  backedUp,
  bytesOf,
  countOf,
  files,
  isFailed,
  isNotFound,
  quiet,
  type Test,
  tags,
  whole,
} from "./engine-place.ts"

const kept: Tree = { "a.txt": "a", "b/c.txt": "c", "b/d.txt": "d", "e/f.txt": "f" }

/** In each folder an entry is missing, changed or new. */
const spoilt: Tree = {
  "a.txt": "changed",
  "b/c.txt": "changed too",
  "e/f.txt": "f",
  "b/new/g.txt": "g",
  "h.txt": "h",
}

/** A snapshot of `kept`, and a folder that was modified since. */
const spoiltFolder = Effect.fnUntraced(function* (...given: Parameters<typeof backedUp>) {
  const { engine, repository, made } = yield* backedUp(given[0], kept)
  const path = yield* folderOf(spoilt)
  const { engine_snapshot_id } = made
  const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
  return { engine, repository, folder }
})

export const exact = (test: Test) => {
  test("makes the folder equal to the snapshot, and deletes other files", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      const done = yield* engine.restore(repository, folder, quiet)
      assert.deepEqual(yield* readTree(folder.path), kept)
      assert.deepEqual(done, { files: countOf(kept), bytes: bytesOf(kept) })
    }))

  test("leaves alone what the backup could not read, and nothing else", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      yield* engine.restore(repository, { ...folder, unread: ["/b/new"] }, quiet)
      assert.deepEqual(yield* readTree(folder.path), { ...kept, "b/new/g.txt": "g" })
      yield* writeTree(folder.path, spoilt)
      const unread = ["/"]
      assert.equal((yield* engine.plan(repository, { ...folder, unread })).deleted, 0)
      yield* engine.restore(repository, { ...folder, unread }, quiet)
      const stays = { "b/new/g.txt": "g", "h.txt": "h" }
      assert.deepEqual(yield* readTree(folder.path), { ...kept, ...stays })
    }))

  test("makes a subtree what it is in the snapshot, and leaves the rest alone", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      yield* engine.restore(repository, { ...folder, sub_path: "/b" }, quiet)
      const beside = { "a.txt": "changed", "e/f.txt": "f", "h.txt": "h" }
      const expected = { ...beside, "b/c.txt": "c", "b/d.txt": "d" }
      assert.deepEqual(yield* readTree(folder.path), expected)
    }))

  test("deletes nothing next to a single file that is restored", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      yield* engine.restore(repository, { ...folder, sub_path: "/b/c.txt" }, quiet)
      assert.deepEqual(yield* readTree(folder.path), { ...spoilt, "b/c.txt": "c" })
    }))

  test("deletes nothing where the sub path is not in the snapshot", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      const pending = engine.restore(repository, { ...folder, sub_path: "/b/new" }, quiet)
      assert.isTrue(isNotFound(yield* Effect.flip(pending)))
      assert.deepEqual(yield* readTree(folder.path), spoilt)
    }))

  test("empties a folder by the snapshot of an empty one", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place, {})
      const path = yield* folderOf(spoilt)
      const { engine_snapshot_id } = made
      const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
      assert.equal((yield* engine.plan(repository, folder)).unchanged, 0)
      yield* engine.restore(repository, folder, quiet)
      assert.deepEqual(yield* readTree(path), {})
    }))
}

/** Files outside the backup's patterns, then new files; each text says which it is. */
const in_scope: Tree = { "b/c.txt": "in", "b/k.txt": "in" }
const kept_out: Tree = { "a.tmp": "out", "b/d.tmp": "out", "b/e/f.tmp": "out" }

export const scopes = (test: Test) => {
  for (const [what, include_patterns, exclude_patterns, spared, deleted] of [
    [
      "was excluded, and new folders that hold such",
      [],
      ["*.tmp"],
      { "new.tmp": "", "b/new/g.tmp": "", "b/new/g.txt": "" },
      ["b/new.txt", "new/h.txt", "z.txt"],
    ],
    ["was not included", ["/b/*.txt"], [], { "z.txt": "", "b/new/g.txt": "" }, ["b/new.txt"]],
    [
      "was excluded of what was included",
      ["/b"],
      ["*.tmp"],
      { "z.txt": "", "b/new.tmp": "" },
      ["b/new.txt", "b/new/g.txt"],
    ],
  ] as const) {
    test(`leaves alone what ${what}`, (place) =>
      Effect.gen(function* () {
        const engine = yield* Engine
        const repository = yield* place.bucket
        yield* engine.init(repository)
        const path = yield* folderOf({ ...in_scope, ...kept_out })
        const options = { path, ...whole, tags, include_patterns, exclude_patterns }
        const { engine_snapshot_id } = yield* engine.backup(repository, options, quiet)
        const later = Object.fromEntries(deleted.map((name) => [name, ""]))
        yield* writeTree(path, { ...spared, ...later })
        const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
        const { actions } = yield* engine.plan(repository, folder)
        const files_only = actions.filter((one) => one.path.includes("."))
        assert.deepEqual(
          files_only,
          deleted.map((name) => ({ action: "deleted", path: `/${name}` })),
        )
        yield* engine.restore(repository, folder, quiet)
        assert.deepEqual(yield* readTree(path), { ...in_scope, ...kept_out, ...spared })
      }))
  }

  test("empties no folder by a snapshot of which nothing was included", (place) =>
    Effect.gen(function* () {
      const engine = yield* Engine
      const repository = yield* place.bucket
      yield* engine.init(repository)
      const path = yield* folderOf(kept)
      const options = { path, ...whole, tags, include_patterns: ["*.none"] }
      const { engine_snapshot_id, files } = yield* engine.backup(repository, options, quiet)
      const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
      assert.deepEqual((yield* engine.plan(repository, folder)).actions, [])
      yield* engine.restore(repository, folder, quiet)
      assert.deepEqual([files, yield* readTree(path)], [0, kept])
    }))
}

export const plans = (test: Test) => {
  test("plans what an exact restore would do, and touches nothing", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      for (const is_exact of [true, false]) {
        const plan = yield* engine.plan(repository, { ...folder, is_exact })
        assert.deepEqual(plan.actions, [
          { action: "updated", path: "/a.txt" },
          { action: "updated", path: "/b/c.txt" },
          { action: "created", path: "/b/d.txt" },
          { action: "deleted", path: "/b/new" },
          { action: "deleted", path: "/b/new/g.txt" },
          { action: "deleted", path: "/h.txt" },
        ])
        assert.deepInclude(plan, { created: 1, updated: 2, deleted: 3 })
      }
      assert.deepEqual(yield* readTree(folder.path), spoilt)
    }))

  test("plans nothing where all is as it was", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place)
      const path = yield* emptyFolder
      const { engine_snapshot_id } = made
      const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
      const before = yield* engine.plan(repository, folder)
      assert.deepInclude(before, { updated: 0, deleted: 0, unchanged: 0 })
      assert.isAtLeast(before.created, Object.keys(files).length)
      yield* engine.restore(repository, folder, quiet)
      const after = yield* engine.plan(repository, folder)
      assert.deepInclude(after, { created: 0, updated: 0, deleted: 0, actions: [] })
      assert.equal(after.unchanged, before.created)
      assert.notEqual(after.hash, before.hash)
    }))

  test("plans for a subtree alone", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      const { actions } = yield* engine.plan(repository, { ...folder, sub_path: "/b" })
      assert.deepEqual(
        actions.map(({ path }) => path),
        ["/b/c.txt", "/b/d.txt", "/b/new", "/b/new/g.txt"],
      )
    }))

  test("has the same hash for the same actions, and another for others", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      const { hash } = yield* engine.plan(repository, folder)
      assert.match(hash, /^[0-9a-f]{64}$/)
      assert.equal((yield* engine.plan(repository, folder)).hash, hash)
      const again = { ...folder, path: yield* folderOf(spoilt) }
      assert.equal((yield* engine.plan(repository, again)).hash, hash)
      yield* writeTree(again.path, { "i.txt": "i" })
      assert.notEqual((yield* engine.plan(repository, again)).hash, hash)
    }))

  test("lists so many actions, and counts them all", (place) =>
    Effect.gen(function* () {
      const many = planned_actions_max + 20
      const { engine, repository, made } = yield* backedUp(place, kept)
      const path = yield* folderOf({
        ...kept,
        ...Object.fromEntries(Array.from({ length: many }, (_, n) => [`z${n}`, ""])),
      })
      const { engine_snapshot_id } = made
      const folder = { engine_snapshot_id, path, sub_path: null, is_exact: true }
      const plan = yield* engine.plan(repository, folder)
      assert.lengthOf(plan.actions, planned_actions_max)
      assert.deepInclude(plan, { deleted: many, created: 0, updated: 0 })
    }))

  test("fails where there is nothing to plan for", (place) =>
    Effect.gen(function* () {
      const { engine, repository, folder } = yield* spoiltFolder(place)
      for (const [target, fails] of [
        [{ ...folder, sub_path: "/nowhere" }, isNotFound],
        [{ ...folder, engine_snapshot_id: "0".repeat(64) }, isFailed],
      ] as const) {
        assert.isTrue(fails(yield* Effect.flip(engine.plan(repository, target))))
      }
    }))
}

export const proofs = (test: Test) => {
  const proven = Effect.fnUntraced(function* (
    repository: Effect.Success<ReturnType<typeof backedUp>>["repository"],
    sample: Omit<Sample, "path">,
  ) {
    const path = yield* emptyFolder
    const result = yield* (yield* Engine).prove(repository, { ...sample, path })
    const tree = yield* readTree(path)
    const names = Object.keys(tree).filter((name) => tree[name] !== null)
    return { ...result, names: names.toSorted(), tree }
  })
  const all = { files_max: 100, bytes_max: 1_000_000, seed: "one" }

  test("proves all files of a small snapshot, empty ones too", (place) =>
    Effect.gen(function* () {
      const { repository, made } = yield* backedUp(place)
      const { engine_snapshot_id } = made
      const proof = yield* proven(repository, { engine_snapshot_id, ...all })
      assert.deepInclude(proof, { files: countOf(files), bytes: bytesOf(files) })
      for (const name of proof.names) assert.equal(proof.tree[name], files[name])
      assert.lengthOf(proof.names, countOf(files))
    }))

  test("proves the same files by the same seed, and others by another", (place) =>
    Effect.gen(function* () {
      const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, `${n}`]))
      const { repository, made } = yield* backedUp(place, many)
      const { engine_snapshot_id } = made
      const some = { engine_snapshot_id, ...all, files_max: 5 }
      const first = yield* proven(repository, some)
      assert.lengthOf(first.names, 5)
      assert.deepEqual((yield* proven(repository, some)).names, first.names)
      const other = yield* proven(repository, { ...some, seed: "another" })
      assert.notDeepEqual(other.names, first.names)
    }))

  test("proves one file at least, however large it is", (place) =>
    Effect.gen(function* () {
      const { repository, made } = yield* backedUp(place, { "a.txt": "12345", "b.txt": "12345" })
      const { engine_snapshot_id } = made
      const proof = yield* proven(repository, { engine_snapshot_id, ...all, bytes_max: 1 })
      assert.deepInclude(proof, { files: 1, bytes: 5 })
      assert.lengthOf(proof.names, 1)
    }))

  test("proves nothing of a snapshot without files, and fails without a snapshot", (place) =>
    Effect.gen(function* () {
      const { repository, made } = yield* backedUp(place, {})
      const { engine_snapshot_id } = made
      const proof = yield* proven(repository, { engine_snapshot_id, ...all })
      assert.deepInclude(proof, { files: 0, bytes: 0, tree: {} })
      const gone = proven(repository, { engine_snapshot_id: "0".repeat(64), ...all })
      assert.isTrue(isFailed(yield* Effect.flip(gone)))
    }))
}
