import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join, resolve } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Schedule, Scope } from "effect"
import { TestClock } from "effect/testing"
import { DataFolder, lockDataFolder } from "#adapters/data-folder/lock.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

const permissions = (path: string) => statSync(path).mode & 0o777

it.live("a folder that is not there is made, for its owner only", () =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "a", "data")
    const folder = yield* lockDataFolder(path)
    const modes = [folder.path, folder.run, folder.nats].map(permissions)
    assert.deepEqual(modes, [0o700, 0o700, 0o700])
  }),
)

it.live("an empty folder that was made for it is closed to others, one that is used is left", () =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "data")
    mkdirSync(path, { mode: 0o755 })
    yield* Effect.scoped(lockDataFolder(path))
    assert.equal(permissions(path), 0o700)
    chmodSync(path, 0o750)
    yield* Effect.scoped(lockDataFolder(path))
    assert.equal(permissions(path), 0o750)
  }),
)

it.live("a second holder's error names the folder, the process and the next step", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    yield* lockDataFolder(path)
    const error = yield* Effect.flip(Effect.scoped(lockDataFolder(path)))
    assert.equal(error._tag, "DataFolderLocked")
    for (const part of [path, `process ${process.pid}`, "ALMANAC_DATA_DIR"]) {
      assert.include(error.message, part)
    }
    // The rejected process must not change the holder's PID file.
    assert.equal(readFileSync(join(path, "run", "almanac.pid"), "utf8"), `${process.pid}\n`)
    assert.equal((yield* Effect.flip(Effect.scoped(lockDataFolder(path))))._tag, error._tag)
  }),
)

it.live("a start waits for a command's short lock, and logs it once", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const messages: Array<unknown> = []
    const heard = Logger.layer([Logger.make(({ message }) => messages.push(message))])
    const verb = yield* Scope.make()
    yield* Scope.provide(lockDataFolder(path, "brief"), verb)
    assert.equal(readFileSync(join(path, "run", "almanac.pid"), "utf8"), `${process.pid}\nbrief\n`)
    yield* Effect.forkScoped(Effect.andThen(Effect.sleep(400), Scope.close(verb, Exit.void)))
    yield* Effect.provide(lockDataFolder(path), heard)
    assert.equal(messages.length, 1)
    assert.include(String(messages[0]), `${path} is in use by process ${process.pid}`)
    assert.equal(readFileSync(join(path, "run", "almanac.pid"), "utf8"), `${process.pid}\n`)
  }),
)

it.live("a start waits no longer than ten seconds for it", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    yield* lockDataFolder(path, "brief")
    const waiting = yield* Effect.forkScoped(Effect.flip(Effect.scoped(lockDataFolder(path))))
    for (let second = 0; second < 11; second++) {
      yield* Effect.yieldNow
      yield* TestClock.adjust("1 seconds")
    }
    assert.equal((yield* Fiber.join(waiting))._tag, "DataFolderLocked")
  }).pipe(Effect.provide([TestClock.layer(), Logger.layer([])])),
)

it.live("a killed server's file is not mistaken for the command that holds the folder now", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const verb = yield* Scope.make()
    const { run } = yield* Scope.provide(lockDataFolder(path, "brief"), verb)
    // The command holds the lock but has not written its id yet. No process has this id.
    writeFileSync(join(run, "almanac.pid"), `${2 ** 30}\n`)
    yield* Effect.forkScoped(Effect.andThen(Effect.sleep(200), Scope.close(verb, Exit.void)))
    yield* Effect.provide(lockDataFolder(path), Logger.layer([]))
  }),
)

it.live("a server removes what a killed one has left half written, and nothing else", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const partial = `node-id.${randomUUID()}.tmp`
    mkdirSync(join(path, "vault"))
    const left = [partial, join("vault", `key.${randomUUID()}.tmp`)].map((name) => join(path, name))
    const others = ["node-id", "mine.tmp", "vault/key"].map((name) => join(path, name))
    for (const file of [...left, ...others]) writeFileSync(file, "")
    yield* Effect.scoped(Layer.build(DataFolder.layer(path, "brief")))
    assert.deepEqual(left.filter(existsSync), left)
    yield* Effect.scoped(Layer.build(DataFolder.layer(path)))
    assert.deepEqual(left.filter(existsSync), [])
    assert.deepEqual(others.filter(existsSync), others)
  }),
)

it.live("a released lock can be acquired again", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const folder = yield* Effect.scoped(lockDataFolder(path))
    assert.isFalse(existsSync(join(folder.run, "almanac.pid")))
    yield* lockDataFolder(path)
  }),
)

it.live("a lock is not inherited by a child, and dies with a process that is killed", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const { pid, child } = yield* holderWithChild(path)
    const error = yield* Effect.flip(Effect.scoped(lockDataFolder(path)))
    assert.include(error.message, `process ${pid}`)
    process.kill(pid, "SIGKILL")
    yield* Effect.scoped(lockDataFolder(path)).pipe(
      Effect.retry({ schedule: Schedule.spaced(20), times: 250 }),
    )
    assert.isTrue(existsSync(`/proc/${child}`) || process.platform !== "linux")
    process.kill(child, "SIGKILL")
  }),
)

it.live("a folder that cannot be made is refused in one line that names it", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "file")
    writeFileSync(file, "")
    const error = yield* Effect.flip(Effect.scoped(lockDataFolder(join(file, "data"))))
    assert.equal(error._tag, "DataFolderUnusable")
    assert.include(error.message, join(file, "data"))
    assert.notInclude(error.message, "\n")
  }),
)

it.live.skipIf(process.getuid?.() !== 0)(
  "another user's is not root's to lock, nor to change",
  () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const { run } = yield* Effect.scoped(lockDataFolder(path))
      const before = readdirSync(run)
      chownSync(run, 4711, 4711)
      const error = yield* Effect.flip(Effect.scoped(lockDataFolder(path)))
      assert.equal(error._tag, "DataFolderUnusable")
      for (const part of [path, "user 4711", "chown -R 0"]) assert.include(error.message, part)
      assert.deepEqual(readdirSync(run), before)
    }),
)

it.live.skipIf(process.getuid?.() !== 0)(
  "root makes nothing in another user's folder, and follows none of that user's links",
  () =>
    Effect.gen(function* () {
      const elsewhere = yield* temporaryFolder
      const victim = join(elsewhere, "victim")
      writeFileSync(victim, "kept")
      const fresh = yield* temporaryFolder
      chownSync(fresh, 4711, 4711)
      const refused = (path: string) => Effect.flip(Effect.scoped(lockDataFolder(path)))
      assert.include((yield* refused(fresh)).message, "user 4711")
      assert.deepEqual(readdirSync(fresh), [])

      symlinkSync(elsewhere, join(fresh, "run"))
      lchownSync(join(fresh, "run"), 4711, 4711)
      assert.include((yield* refused(fresh)).message, "user 4711")
      assert.deepEqual(readdirSync(elsewhere), ["victim"])

      const path = yield* temporaryFolder
      const { run } = yield* Effect.scoped(lockDataFolder(path))
      symlinkSync(victim, join(run, `.probe-${process.pid}`))
      yield* Effect.scoped(lockDataFolder(path))
      assert.equal(readFileSync(victim, "utf8"), "kept")
    }),
)

it.live("what is no lock file is refused, and left as it is", () =>
  Effect.gen(function* () {
    const path = yield* temporaryFolder
    const { run } = yield* Effect.scoped(lockDataFolder(path))
    writeFileSync(join(run, "lock.sqlite"), "x".repeat(4096))
    const error = yield* Effect.flip(Effect.scoped(lockDataFolder(path)))
    assert.equal(error._tag, "DataFolderUnusable")
    assert.equal(statSync(join(run, "lock.sqlite")).size, 4096)
  }),
)

/** Another process that holds the lock of `path` and has started a child process. */
const holderWithChild = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly pid: number; readonly child: number }>((resume) => {
      const holder = spawn(
        process.execPath,
        [resolve("test/adapters/data-folder/hold-data-lock.ts"), path],
        {
          stdio: ["ignore", "pipe", "inherit"],
        },
      )
      holder.stdout.once("data", (line) => {
        resume(Effect.succeed({ pid: holder.pid ?? 0, child: Number(line) }))
      })
    }),
    ({ pid }) => Effect.ignore(Effect.try(() => process.kill(pid, "SIGKILL"))),
  )
