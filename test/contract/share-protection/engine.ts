/** Contract of every Engine adapter, with real folders. */
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { Engine, EngineFailed, type Repository } from "#actors/share-protection/ports/engine.ts"
import { RepositoryLocked, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { emptyFolder, folderOf, readTree } from "../../world/folder.ts"
import { backups, patterns } from "./engine-backup.ts"
import { exact, plans, proofs, scopes } from "./engine-exact.ts"
import {
  backedUp,
  countOf,
  type EnginePlace,
  files,
  isFailed,
  isNotFound,
  type Lack,
  type Made,
  quiet,
  restored,
  type Test,
  tags,
  whole,
} from "./engine-place.ts"

const repositories = (test: Test) => {
  test("makes a repository, and finds it again", (place) =>
    Effect.gen(function* () {
      const engine = yield* Engine
      const repository = yield* place.bucket
      const made = yield* engine.init(repository)
      assert.isAtLeast(made.format, 2)
      assert.notEqual(made.profile, "")
      assert.deepEqual(yield* engine.init(repository), made)
      assert.deepEqual(yield* engine.snapshots(repository), [])
    }))

  test("opens a repository by its password only", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place)
      const wrong = { ...repository, password: Redacted.make("another-password") }
      const path = yield* emptyFolder
      for (const call of [
        engine.init(wrong),
        engine.snapshots(wrong),
        engine.maintain(wrong),
        engine.restore(wrong, { ...made, path, sub_path: null, is_exact: false }, quiet),
        engine.backup(wrong, { path, ...whole, tags }, quiet),
      ]) {
        const failure: unknown = yield* Effect.flip<unknown, unknown, never>(call)
        assert.instanceOf(failure, TrustAccessDenied)
        assert.notInclude(JSON.stringify(failure), "another-password")
      }
      assert.deepEqual(yield* readTree(path), {})
    }))

  test("does nothing where there is no repository, and says that it wrote nothing", (place) =>
    Effect.gen(function* () {
      const engine = yield* Engine
      const repository = yield* place.bucket
      const path = yield* folderOf(files)
      const failure = yield* Effect.flip(engine.backup(repository, { path, ...whole, tags }, quiet))
      assert(failure instanceof EngineFailed)
      assert.isTrue(failure.wrote_nothing)
      assert.isTrue(isFailed(yield* Effect.flip(engine.snapshots(repository))))
    }))

  test("keeps the repositories of different buckets apart", (place) =>
    Effect.gen(function* () {
      const { engine } = yield* backedUp(place)
      const other = yield* place.bucket
      yield* engine.init(other)
      assert.deepEqual(yield* engine.snapshots(other), [])
    }))
}

const restores = (test: Test) => {
  for (const [what, sub_path, wanted] of [
    ["a folder", "/home/u1", ["home/u1/notes.txt", "home/u1/cache/one.tmp"]],
    ["a folder, with extra slashes", "//home//u1/", ["home/u1/notes.txt", "home/u1/cache/one.tmp"]],
    ["a file", "/home/u2/notes.txt", ["home/u2/notes.txt"]],
    ["a file with an odd name", "/home/u2/[odd] *name?.txt", ["home/u2/[odd] *name?.txt"]],
    ["a link", "/link", ["link"]],
    ["everything by the root", "/", Object.keys(files)],
  ] as const) {
    test(`restores ${what} at its place, and nothing else`, (place) =>
      Effect.gen(function* () {
        const { repository, made } = yield* backedUp(place)
        const back = yield* restored(repository, made.engine_snapshot_id, sub_path)
        const expected = Object.fromEntries(wanted.map((name) => [name, files[name]]))
        assert.deepEqual(back.tree, expected)
        assert.equal(back.files, countOf(back.tree))
      }))
  }

  test("fails if the sub path or the snapshot is missing, and writes nothing", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place)
      const path = yield* emptyFolder
      const { engine_snapshot_id } = made
      for (const [folder, fails] of [
        [{ engine_snapshot_id, path, sub_path: "/home/u9" }, isNotFound],
        [{ engine_snapshot_id, path, sub_path: "/home/u" }, isNotFound],
        [{ engine_snapshot_id: "0".repeat(64), path, sub_path: null }, isFailed],
      ] as const) {
        const pending = engine.restore(repository, { ...folder, is_exact: false }, quiet)
        assert.isTrue(fails(yield* Effect.flip(pending)))
      }
      assert.deepEqual(yield* readTree(path), {})
    }))

  test("overwrites changed files, and keeps other files", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made } = yield* backedUp(place, { "a.txt": "old", "b/c": "c" })
      const path = yield* folderOf({ "a.txt": "spoilt by somebody", "b/d": "d", "z.txt": "other" })
      const { engine_snapshot_id } = made
      const folder = { engine_snapshot_id, path, sub_path: null, is_exact: false }
      yield* engine.restore(repository, folder, quiet)
      const expected = { "a.txt": "old", "b/c": "c", "b/d": "d", "z.txt": "other" }
      assert.deepEqual(yield* readTree(path), expected)
    }))
}

const upkeep = (test: Test) => {
  test("forgets snapshots by id, also those that are gone, and keeps the others", (place) =>
    Effect.gen(function* () {
      const { engine, repository, made, path } = yield* backedUp(place)
      const second = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
      const gone = [made.engine_snapshot_id, "f".repeat(64)]
      yield* engine.forget(repository, gone)
      yield* engine.forget(repository, gone)
      yield* engine.maintain(repository)
      const left = yield* engine.snapshots(repository)
      assert.deepEqual(
        left.map(({ engine_snapshot_id }) => engine_snapshot_id),
        [second.engine_snapshot_id],
      )
      assert.deepEqual((yield* restored(repository, second.engine_snapshot_id)).tree, files)
      const lost = restored(repository, made.engine_snapshot_id)
      assert.isTrue(isFailed(yield* Effect.flip(lost)))
    }))

  test("forgets nothing when nothing is named", (place) =>
    Effect.gen(function* () {
      const { engine, repository } = yield* backedUp(place)
      yield* engine.forget(repository, [])
      assert.lengthOf(yield* engine.snapshots(repository), 1)
    }))

  test(
    "brings an old repository to the newest format, and keeps what is in it",
    (place) =>
      Effect.gen(function* () {
        const engine = yield* Engine
        const repository = yield* place.old
        assert.equal((yield* engine.init(repository)).format, 1)
        const path = yield* folderOf(files)
        const made = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
        const upgraded = yield* engine.upgrade(repository)
        assert.isAtLeast(upgraded.to_format, 2)
        assert.deepEqual(yield* engine.upgrade(repository), upgraded)
        assert.equal((yield* engine.init(repository)).format, upgraded.to_format)
        assert.deepEqual((yield* restored(repository, made.engine_snapshot_id)).tree, files)
      }),
    "old",
  )
}

/** Starts a slow backup, and returns once it is in progress. */
const underWay = Effect.fnUntraced(function* (slow: Made<Repository>) {
  const engine = yield* Engine
  const repository = yield* slow
  yield* engine.init(repository)
  const begun = yield* Deferred.make<void>()
  const path = yield* folderOf(
    Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`${n}`, `${n}`.repeat(50_000)])),
  )
  const backup = engine.backup(repository, { path, ...whole, tags }, () =>
    Effect.asVoid(Deferred.succeed(begun, undefined)),
  )
  const fiber = yield* Effect.forkChild(backup)
  yield* Deferred.await(begun)
  return { engine, repository, fiber, path }
})

const locks = (test: Test) => {
  test(
    "leaves no snapshot and a usable repository when it is interrupted",
    (place) =>
      Effect.gen(function* () {
        const { engine, repository, fiber, path } = yield* underWay(place.slow)
        yield* Fiber.interrupt(fiber)
        assert.deepEqual(yield* engine.snapshots(repository), [])
        yield* engine.maintain(repository)
        const made = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
        assert.equal(made.files, 40)
      }),
    "slow",
  )

  test(
    "locks a repository against others that would change what it reads",
    (place) =>
      Effect.gen(function* () {
        const { engine, repository, fiber } = yield* underWay(place.slow)
        for (const call of [
          engine.maintain(repository),
          engine.forget(repository, ["f".repeat(64)]),
        ]) {
          assert.instanceOf(yield* Effect.flip(call), RepositoryLocked)
        }
        yield* engine.unlock(repository)
        assert.instanceOf(yield* Effect.flip(engine.maintain(repository)), RepositoryLocked)
        assert.deepEqual(yield* engine.snapshots(repository), [])
        yield* Fiber.interrupt(fiber)
        yield* engine.maintain(repository)
      }),
    "slow",
  )

  test(
    "keeps the lock of a killed engine until it is taken away",
    (place) =>
      Effect.gen(function* () {
        const { engine, repository, path, made } = yield* backedUp(place)
        yield* place.kill(repository, { path, ...whole, tags: ["backup=killed"] })
        assert.lengthOf(yield* engine.snapshots(repository), 1)
        assert.instanceOf(yield* Effect.flip(engine.maintain(repository)), RepositoryLocked)
        yield* engine.backup(repository, { path, ...whole, tags }, quiet)
        yield* engine.unlock(repository)
        yield* engine.maintain(repository)
        assert.deepEqual((yield* restored(repository, made.engine_snapshot_id)).tree, files)
      }),
    "kill",
  )
}

/** Runs the suite; each test has its own place. */
export const engineContract = (
  run: (name: string, body: (place: EnginePlace) => Made<void>) => void,
  lacks: ReadonlyArray<Lack> = [],
) => {
  const test: Test = (name, body, ...needs) => {
    if (!needs.some((need) => lacks.includes(need))) run(name, body)
  }
  describe("repositories", () => repositories(test))
  describe("backups", () => backups(test))
  describe("patterns", () => patterns(test))
  describe("restores", () => restores(test))
  describe("upkeep", () => upkeep(test))
  describe("exact restores", () => exact(test))
  describe("exact restores by patterns", () => scopes(test))
  describe("plans", () => plans(test))
  describe("proofs", () => proofs(test))
  describe("locks", () => locks(test))
}
