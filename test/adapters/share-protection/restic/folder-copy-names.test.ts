/** Names that are not valid UTF-8: from the share through its copy and restic, and back. */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Engine } from "#actors/share-protection/ports/engine.ts"
import { copyFolder, folderBytes, removeFolder } from "#adapters/share-protection/folder-copy.ts"
import { emptyFolder } from "../../../world/folder.ts"
import { describeWithRestic } from "../../../world/programs/restic.ts"
import {
  quiet,
  removeRepository,
  repository,
  withRepository,
} from "../../../world/share-protection/restic/fake.ts"

afterAll(removeRepository)

/** A path below the folder, with names in Latin-1. */
const latin = (root: string, path: string) =>
  Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")])

/** A Latin-1 file, a folder with a file in it, and a link to it. */
const latinFolder = Effect.map(emptyFolder, (root) => {
  mkdirSync(latin(root, "Entwürfe/für"), { recursive: true })
  writeFileSync(latin(root, "café.txt"), "coffee")
  writeFileSync(latin(root, "Entwürfe/für/Größe"), "size")
  symlinkSync(Buffer.from("Entwürfe/für/Größe", "latin1"), latin(root, "lïnk"))
  writeFileSync(`${root}/plain`, "plain")
  return root
})

/** All files below a folder, by path. Paths are decoded as Latin-1, so that no byte is lost. */
const readAll = (root: string, above = ""): Readonly<Record<string, string>> =>
  Object.assign(
    {},
    ...readdirSync(latin(root, above), { encoding: "buffer" }).map((name) => {
      const path = above === "" ? name.toString("latin1") : `${above}/${name.toString("latin1")}`
      const at = latin(root, path)
      const stats = lstatSync(at)
      if (stats.isDirectory()) return { [`${path}/`]: "", ...readAll(root, path) }
      if (!stats.isSymbolicLink()) return { [path]: readFileSync(at, "utf8") }
      return { [path]: `->${readlinkSync(at, { encoding: "buffer" }).toString("latin1")}` }
    }),
  )

const all = {
  "café.txt": "coffee",
  "Entwürfe/": "",
  "Entwürfe/für/": "",
  "Entwürfe/für/Größe": "size",
  lïnk: "->Entwürfe/für/Größe",
  plain: "plain",
}

describe("a copy of names that are no UTF-8", () => {
  it.effect("has each of them, is measured, and can be removed", () =>
    Effect.gen(function* () {
      const from = yield* latinFolder
      assert.deepEqual(readAll(from), all)
      const to = `${yield* emptyFolder}/copy`
      yield* copyFolder(from, to)
      assert.deepEqual(readAll(to), all)
      for (const path of ["café.txt", "Entwürfe/für", "lïnk"]) {
        assert.equal(lstatSync(latin(to, path)).mtimeMs, lstatSync(latin(from, path)).mtimeMs)
      }
      assert.equal(yield* folderBytes(to), "coffee".length + "size".length + "plain".length)
      yield* removeFolder(to)
      assert.throws(() => lstatSync(to), /ENOENT/)
    }).pipe(Effect.scoped),
  )
})

describeWithRestic("a backup of names that are no UTF-8", () => {
  it.live("counts each of them, and a restore in place keeps them byte for byte", () =>
    Effect.gen(function* () {
      const live = yield* latinFolder
      const copy = `${yield* emptyFolder}/copy`
      yield* copyFolder(live, copy)
      const check = Effect.fnUntraced(function* (engine: Engine["Service"]) {
        const nothing = { host: "share", tags: [], include_patterns: [], exclude_patterns: [] }
        const made = yield* engine.backup(repository, { path: copy, ...nothing }, quiet)
        assert.deepInclude(made, { files: 3, bytes: 15, partial: false })
        const { engine_snapshot_id } = made
        const restore = { engine_snapshot_id, path: live, sub_path: null, is_exact: true }
        writeFileSync(latin(live, "café.txt"), "spoilt")
        writeFileSync(latin(live, "cafè.txt"), "new")
        yield* engine.restore(repository, restore, quiet)
        assert.deepEqual(readAll(live), all)
      })
      yield* withRepository(check)
    }).pipe(Effect.scoped),
  )
})
