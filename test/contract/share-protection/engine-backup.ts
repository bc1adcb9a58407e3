/** Contract of every Engine adapter for backups: what they include and what they exclude. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Engine, type EngineProgress } from "#actors/share-protection/ports/engine.ts"
import { emptyFolder, folderOf, modeOf, setMode, type Tree } from "../../world/folder.ts"
import {
  backedUp,
  bytesOf,
  countOf,
  type EnginePlace,
  files,
  isFailed,
  quiet,
  restored,
  share,
  type Test,
  tags,
  whole,
} from "./engine-place.ts"

export const backups = (test: Test) => {
  test("restores what it backed up, byte for byte", (place) =>
    Effect.gen(function* () {
      const { repository, made } = yield* backedUp(place)
      assert.isFalse(made.partial)
      assert.equal(made.files, countOf(files))
      assert.equal(made.bytes, bytesOf(files))
      assert.isAtLeast(made.stored_bytes, 1)
      const back = yield* restored(repository, made.engine_snapshot_id)
      assert.deepEqual(back.tree, files)
      assert.equal(back.files, countOf(files))
      assert.equal(back.bytes, bytesOf(files))
    }))

  test("keeps the modes of files", (place) =>
    Effect.gen(function* () {
      const engine = yield* Engine
      const repository = yield* place.bucket
      yield* engine.init(repository)
      const path = yield* folderOf({ "run.sh": "exit", "plain.txt": "x" })
      yield* setMode(`${path}/run.sh`, 0o750)
      yield* setMode(`${path}/plain.txt`, 0o604)
      const made = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
      const back = yield* restored(repository, made.engine_snapshot_id)
      assert.equal(yield* modeOf(`${back.path}/run.sh`), 0o750)
      assert.equal(yield* modeOf(`${back.path}/plain.txt`), 0o604)
    }))

  test("keeps each snapshot as it was when it was taken", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place)
      const later: Tree = { "a.txt": "changed", "b.txt": "new" }
      const path = yield* folderOf(later)
      const second = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
      assert.notEqual(second.engine_snapshot_id, made.engine_snapshot_id)
      assert.deepEqual((yield* restored(repository, made.engine_snapshot_id)).tree, files)
      assert.deepEqual((yield* restored(repository, second.engine_snapshot_id)).tree, later)
    }))

  test("stores the same content once", (place) =>
    Effect.gen(function* () {
      const large = { "large.bin": "0123456789abcdef".repeat(20_000) }
      const { engine, repository, path, made } = yield* backedUp(place, large)
      const again = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
      assert.equal(again.bytes, made.bytes)
      assert.isBelow(again.stored_bytes, 10_000)
    }))

  test("backs up an empty folder", (place) =>
    Effect.gen(function* () {
      const { repository, made } = yield* backedUp(place, {})
      assert.deepInclude(made, { files: 0, bytes: 0, partial: false })
      const back = yield* restored(repository, made.engine_snapshot_id)
      assert.deepEqual([back.tree, back.files], [{}, 0])
    }))

  test("returns the labels of each snapshot", (place) =>
    Effect.gen(function* () {
      const before = new Date(Date.now() - 1000).toISOString()
      const { engine, repository, made } = yield* backedUp(place)
      const [snapshot, ...more] = yield* engine.snapshots(repository)
      assert.deepEqual(more, [])
      const { engine_snapshot_id, taken_at } = made
      assert.deepInclude(snapshot, { engine_snapshot_id, taken_at, host: share })
      assert.deepEqual(snapshot?.tags, tags)
      assert.match(taken_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.isTrue(taken_at >= before)
      for (const known of [snapshot?.files ?? 0, snapshot?.bytes ?? 0]) assert.isAtLeast(known, 0)
    }))

  test("reports its progress, between 0 and 100", (place) =>
    Effect.gen(function* () {
      const engine = yield* Engine
      const repository = yield* place.bucket
      yield* engine.init(repository)
      const seen: Array<EngineProgress> = []
      const see = (progress: EngineProgress) => Effect.sync(() => seen.push(progress))
      const path = yield* folderOf(files)
      const onProgress = (progress: EngineProgress) => Effect.asVoid(see(progress))
      const { engine_snapshot_id } = yield* engine.backup(
        repository,
        { path, ...whole, tags },
        onProgress,
      )
      const to = yield* emptyFolder
      const folder = { engine_snapshot_id, path: to, sub_path: null, is_exact: false }
      yield* engine.restore(repository, folder, onProgress)
      for (const { percent, bytes_done, bytes_total } of seen) {
        assert.isTrue(percent >= 0 && percent <= 100)
        assert.isTrue(bytes_done >= 0 && bytes_total >= 0)
      }
    }))

  test("fails if the folder is missing, and writes no snapshot", (place) =>
    Effect.gen(function* () {
      const { engine, repository } = yield* backedUp(place)
      const path = `${yield* emptyFolder}/gone`
      const failure = yield* Effect.flip(
        engine.backup(repository, { path, ...whole, tags: ["backup=two"] }, quiet),
      )
      assert.isTrue(isFailed(failure))
      assert.lengthOf(yield* engine.snapshots(repository), 1)
    }))

  test(
    "says so where a file cannot be read, and keeps the rest",
    (place) =>
      Effect.gen(function* () {
        const engine = yield* Engine
        const repository = yield* place.bucket
        yield* engine.init(repository)
        const path = yield* folderOf({ "a.txt": "seen", "b.txt": "hidden", "c.txt": "seen too" })
        yield* place.hide(`${path}/b.txt`)
        const made = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
        assert.deepInclude(made, { partial: true, unread: ["/b.txt"] })
        const back = yield* restored(repository, made.engine_snapshot_id)
        assert.deepEqual(back.tree, { "a.txt": "seen", "c.txt": "seen too" })
      }),
    "hide",
  )
}

export const patterns = (test: Test) => {
  const kept = Effect.fnUntraced(function* (
    place: EnginePlace,
    include_patterns: ReadonlyArray<string>,
    exclude_patterns: ReadonlyArray<string>,
  ) {
    const engine = yield* Engine
    const repository = yield* place.bucket
    yield* engine.init(repository)
    const path = yield* folderOf(files)
    const folder = { path, host: share, tags, include_patterns, exclude_patterns }
    const { engine_snapshot_id } = yield* engine.backup(repository, folder, quiet)
    const { tree } = yield* restored(repository, engine_snapshot_id)
    return Object.keys(tree).filter((name) => tree[name] !== null)
  })
  const all = Object.keys(files).filter((name) => files[name] !== null)
  const but = (...names: ReadonlyArray<string>) => all.filter((name) => !names.includes(name))
  const in_home = all.filter((name) => name.startsWith("home/"))

  for (const [what, include, exclude, left] of [
    ["a name wherever it is", [], ["notes.txt"], but("home/u1/notes.txt", "home/u2/notes.txt")],
    ["names by a star", [], ["*.tmp"], but("home/u1/cache/one.tmp")],
    ["a folder with all that is in it", [], ["cache"], but("home/u1/cache/one.tmp")],
    ["what is at the root, and only there", [], ["/a.txt", "/notes.txt"], but("a.txt")],
    ["a folder at its place", [], ["/home/u1"], all.filter((n) => !n.startsWith("home/u1/"))],
    ["nested folders", [], ["home/**/notes.txt"], but("home/u1/notes.txt", "home/u2/notes.txt")],
    ["nothing that matches no pattern", [], ["nowhere", "*.none"], all],
    ["all but an included name", ["notes.txt"], [], ["home/u1/notes.txt", "home/u2/notes.txt"]],
    ["all but an included folder", ["/home/u1"], [], all.filter((n) => n.startsWith("home/u1/"))],
    ["what is excluded though it is included", ["/home/u1"], ["*.tmp"], ["home/u1/notes.txt"]],
    ["what is both excluded and included", ["*.tmp", "a.txt"], ["*.tmp"], ["a.txt"]],
    ["what is excluded at the root of all that is included", ["*"], ["/home"], but(...in_home)],
    ["what is below an excluded folder", ["notes.txt"], ["u1"], ["home/u2/notes.txt"]],
    ["all of what is included and excluded", ["*.tmp"], ["*.tmp"], []],
  ] as const) {
    test(`leaves out ${what}`, (place) =>
      Effect.gen(function* () {
        assert.sameMembers(yield* kept(place, include, exclude), [...left])
      }))
  }
}
