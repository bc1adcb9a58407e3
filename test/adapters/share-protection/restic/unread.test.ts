/**
 * Files that a backup could not read, with a real restic: an in-place restore never deletes them.
 */
import { chmodSync } from "node:fs"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { folderOf, readTree, type Tree, writeTree } from "../../../world/folder.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"
import { describeWithRestic, obedientRestic } from "../../../world/programs/restic.ts"
import {
  inFolders,
  newRepository,
  quiet,
  removeRepository,
  repository,
} from "../../../world/share-protection/restic/fake.ts"

afterAll(removeRepository)

const live: Tree = {
  "a.txt": "a",
  "secret.txt": "unread",
  "docs/b.txt": "b",
  "docs/locked/c.txt": "unread",
  "docs/locked/deep/d.txt": "unread",
}

/** Files written after the backup. */
const later: Tree = { "new.txt": "new", "docs/locked/new.txt": "new", "docs/new/e.txt": "new" }

/** Makes a backup while part of the folder is unreadable, makes it readable, and then restores. */
const restored = Effect.fnUntraced(function* (more: {
  readonly sub_path?: string
  readonly exclude_patterns?: ReadonlyArray<string>
  readonly unread?: ReadonlyArray<string>
  readonly is_still_hidden?: boolean
  readonly spoilt?: Tree
}) {
  const { sub_path = null, exclude_patterns = [], is_still_hidden = false } = more
  const hidden = ["secret.txt", "docs/locked"]
  const engine = yield* Engine
  const path = yield* folderOf(live)
  for (const name of hidden) chmodSync(`${path}/${name}`, 0o000)
  const options = { path, host: "share", tags: [], include_patterns: [], exclude_patterns }
  const made = yield* engine.backup(repository, options, quiet)
  const show = () => {
    for (const name of hidden) chmodSync(`${path}/${name}`, 0o755)
  }
  show()
  yield* writeTree(path, { ...later, ...more.spoilt })
  if (is_still_hidden) for (const name of hidden) chmodSync(`${path}/${name}`, 0o000)
  const { engine_snapshot_id } = made
  const { unread = made.unread } = more
  const folder = { engine_snapshot_id, path, sub_path, unread, is_exact: true }
  const { actions } = yield* engine.plan(repository, folder)
  yield* engine.restore(repository, folder, quiet)
  show()
  const deleted = actions.flatMap(({ action, path }) => (action === "deleted" ? [path] : []))
  return { made, deleted, after: yield* readTree(path) }
})

const without = (...names: ReadonlyArray<string>) =>
  Object.fromEntries(
    Object.entries({ ...live, ...later }).filter(([name]) => !names.includes(name)),
  )

describeWithRestic("a restore in place of a partial backup by restic", () => {
  const test = (name: string, body: Effect.Effect<void, unknown, Engine | Scope.Scope>) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const binary = obedientRestic(folder)
        if (binary === undefined) return
        const all = Effect.andThen(newRepository(folder), body)
        yield* Effect.provide(all, inFolders(folder, binary))
      }).pipe(Effect.scoped),
    )

  test(
    "leaves alone what could not be read, and what is in it",
    Effect.gen(function* () {
      const { made, deleted, after } = yield* restored({})
      assert.deepInclude(made, { partial: true, unread: ["/docs/locked", "/secret.txt"] })
      assert.deepEqual(deleted, ["/docs/new", "/docs/new/e.txt", "/new.txt"])
      assert.deepEqual(after, without("docs/new/e.txt", "new.txt"))
    }),
  )

  test(
    "leaves it alone where it can still not be read",
    Effect.gen(function* () {
      const { deleted, after } = yield* restored({ is_still_hidden: true })
      assert.deepEqual(deleted, ["/docs/new", "/docs/new/e.txt", "/new.txt"])
      assert.deepEqual(after, without("docs/new/e.txt", "new.txt"))
    }),
  )

  test(
    "brings back what is in the snapshot of it all the same",
    Effect.gen(function* () {
      const unread = ["/docs", "/secret.txt"]
      const { deleted, after } = yield* restored({ unread, spoilt: { "docs/b.txt": "spoilt" } })
      assert.deepEqual(deleted, ["/new.txt"])
      assert.deepEqual(after, without("new.txt"))
    }),
  )

  test(
    "keeps it in a subtree, and next to excluded files",
    Effect.gen(function* () {
      const { after } = yield* restored({ sub_path: "/docs", exclude_patterns: ["e.*"] })
      assert.deepEqual(after, without())
    }),
  )

  test(
    "deletes nothing if the unreadable files are unknown",
    Effect.gen(function* () {
      const { deleted, after } = yield* restored({ unread: ["/"] })
      assert.deepEqual(deleted, [])
      assert.deepEqual(after, without())
    }),
  )
})
