/** The backup folder and the files of a data folder, without a bus. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it as plain } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Schema } from "effect"
import { bytesOf, includedFiles, putFile } from "#adapters/state/files.ts"
import { claimFolder } from "#adapters/state/restore.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { type StateManifest, StoredFile } from "#schemas/system/state-backup.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

const sha256 = "0".repeat(64)
const stored = (path: string): StoredFile => ({
  path,
  mode: 0o600,
  bytes: 0,
  sha256,
  object: sha256,
  stored_bytes: 0,
})

const none = { last: 0, messages: 0, parts: [] }

const manifestOf = (files: ReadonlyArray<StoredFile>): StateManifest => ({
  id: "backup",
  almanac: "0",
  created_at: "2026-11-22T00:00:00.000Z",
  events: none,
  webhooks: none,
  files,
  log: {
    ...none,
    generation: 1,
    base: 0,
    copies: 0,
    hash: sha256,
    tree: { size: 1, peaks: [sha256] },
    head: "",
    key: "",
  },
})

const it = plain.effect

describe("a path in a manifest", () => {
  plain("never leads out of the folder", () => {
    const isPath = (path: string) => Schema.is(StoredFile)(stored(path))
    for (const right of ["a", "vault/key", "log/generation-1.json", "..a/b..", ".a", "a\nb"]) {
      assert.isTrue(isPath(right), right)
    }
    const wrong = ["", "/a", "..", "../a", "a/..", "a/../b", "a/./b", ".", "a//b", "a/", "a\\b"]
    for (const path of [...wrong, "a\0", "a\n/../../b", "a\n/..", "\n/../b"]) {
      assert.isFalse(isPath(path), JSON.stringify(path))
    }
  })
})

describe("the files that a backup keeps", () => {
  it("are what links lead to too", () =>
    Effect.gen(function* () {
      const [folder, other] = [yield* temporaryFolder, yield* temporaryFolder]
      mkdirSync(join(other, "log"))
      writeFileSync(join(other, "log", "generation-1.json"), "{}", { mode: 0o600 })
      writeFileSync(join(other, "key"), "secret", { mode: 0o600 })
      symlinkSync(join(other, "log"), join(folder, "log"))
      symlinkSync(join(other, "key"), join(folder, "audit-key.pem"))
      // The backup itself is not one of them.
      mkdirSync(join(other, "backup"))
      writeFileSync(join(other, "backup", "manifest.jsonl"), "")
      symlinkSync(join(other, "backup"), join(folder, "backup"))
      const found = yield* Effect.promise(() => includedFiles(folder, join(other, "backup")))
      assert.deepEqual(found, [
        { path: "audit-key.pem", mode: 0o600 },
        { path: "log/generation-1.json", mode: 0o600 },
      ])
    }).pipe(Effect.scoped))

  it("are not none where they cannot be listed", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      assert.deepEqual(yield* Effect.promise(() => includedFiles(folder)), [])
      writeFileSync(folder, "no folder")
      yield* Effect.flip(Effect.tryPromise(() => includedFiles(folder)))
    }).pipe(Effect.scoped))

  it("are a database as it was left by one that was killed", () =>
    Effect.gen(function* () {
      const [folder, lost] = [yield* temporaryFolder, yield* temporaryFolder]
      mkdirSync(join(lost, "run"))
      const name = "spool-test.sqlite"
      const database = new Sqlite(join(folder, name))
      database.pragma("journal_mode = WAL")
      database.exec("create table fact (id integer); insert into fact values (7)")
      for (const end of ["", "-wal"]) {
        writeFileSync(join(lost, name + end), readFileSync(join(folder, name + end)))
      }
      database.close()
      const back = join(yield* temporaryFolder, "data")
      yield* Effect.promise(() => putFile(back, stored(name), bytesOf(lost, name)))
      const copy = new Sqlite(join(back, name), { readonly: true })
      assert.deepEqual(copy.prepare("select id from fact").all(), [{ id: 7 }])
      copy.close()
    }).pipe(Effect.scoped))
})

describe("the folder of a backup", () => {
  it("loses nothing that is not the backup's", () =>
    Effect.gen(function* () {
      const to = join(yield* temporaryFolder, "backup")
      const store = yield* openStateStore(to, { make: true })
      const kept = yield* Effect.promise(() => store.put("a", 0o600, [Buffer.from("a")]))
      const old = yield* Effect.promise(() => store.put("b", 0o600, [Buffer.from("b")]))
      writeFileSync(join(to, "objects", "mine.txt"), "somebody's")
      yield* store.commit(manifestOf([kept]))
      assert.isTrue(existsSync(join(to, "objects", "mine.txt")))
      assert.isTrue(existsSync(join(to, "objects", kept.object)))
      assert.isFalse(existsSync(join(to, "objects", old.object)))
    }).pipe(Effect.scoped))

  it.skipIf(!existsSync("/proc/self"))("is refused at once where none can be made", () =>
    Effect.gen(function* () {
      const opening = openStateStore("/proc/almanac", { make: true })
      const { message } = yield* Effect.flip(opening)
      assert.match(message, /^\/proc\/almanac cannot be created: .*ENOENT/)
    }).pipe(Effect.scoped),
  )

  it("knows what it lost", () =>
    Effect.gen(function* () {
      const to = join(yield* temporaryFolder, "backup")
      const store = yield* openStateStore(to, { make: true })
      const file = yield* Effect.promise(() => store.put("a", 0o600, [Buffer.from("a")]))
      const path = join(to, "objects", file.object)
      assert.isTrue(yield* Effect.promise(() => store.holds(file)))
      writeFileSync(path, "")
      assert.isFalse(yield* Effect.promise(() => store.holds(file)))
      rmSync(path)
      assert.isFalse(yield* Effect.promise(() => store.holds(file)))
    }).pipe(Effect.scoped))
})

describe("a folder that is claimed for a restore", () => {
  it("is closed to others before anything is in it, and when it is claimed again", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "data")
      mkdirSync(folder, { mode: 0o755 })
      const manifest = manifestOf([])
      yield* claimFolder(folder, manifest)
      assert.equal(statSync(folder).mode & 0o777, 0o700)
      // For example, killed between writing the mark and setting the mode.

      chmodSync(folder, 0o755)
      yield* claimFolder(folder, manifest)
      assert.equal(statSync(folder).mode & 0o777, 0o700)
    }).pipe(Effect.scoped))
})
