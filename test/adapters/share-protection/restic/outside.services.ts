/** Side effects of a real restic: its secrets, its exit, and a faulty bucket. */
import { spawn } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { createReadStream, readdirSync, readFileSync, statSync, truncateSync } from "node:fs"
import { open, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { Engine, EngineFailed, type Repository } from "#actors/share-protection/ports/engine.ts"
import { engineRestic, type ResticOptions } from "#adapters/share-protection/engine-restic.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { certificateText } from "../../../world/certificate.ts"
import { emptyFolder, folderOf, readTree } from "../../../world/folder.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"
import { describeWithRadosgw, S3 } from "../../../world/programs/radosgw.ts"
import { describeWithRestic } from "../../../world/programs/restic.ts"
import { s3Front } from "../../../world/programs/s3-front.ts"
import {
  password,
  repositoryOn,
  resticsOn,
  slowed,
  until,
} from "../../../world/share-protection/restic/buckets.ts"

const quiet = () => Effect.void
/** For tests that read 8 GiB, on a machine that is also busy with other work. */
const large_ms_max = 180_000
const nothing = { host: "share", tags: [], include_patterns: [], exclude_patterns: [] }

/** A separate engine for a test, and a repository that it created. */
const withRepository = <A, E, R>(
  body: (
    engine: Engine["Service"],
    repository: Repository,
    folder: string,
  ) => Effect.Effect<A, E, R>,
  options: Partial<ResticOptions> = {},
) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const repository = yield* repositoryOn(yield* S3, { lock: false })
    const made = engineRestic({ cache_dir: `${folder}/cache`, ...options })
    return yield* Effect.gen(function* () {
      const engine = yield* Engine
      yield* engine.init(repository)
      return yield* body(engine, repository, folder)
    }).pipe(Effect.provide(Layer.fresh(made)))
  }).pipe(Effect.scoped)

const secretsOf = ({ access_key, secret_key }: Repository) => [
  Redacted.value(access_key),
  Redacted.value(secret_key),
  password,
]

/** A backup that waits for the bucket, and restic's process. */
const underWay = Effect.fnUntraced(function* (engine: Engine["Service"], repository: Repository) {
  const slow = yield* slowed(repository, /\/data\//)
  const path = yield* folderOf({ "a.txt": randomBytes(9_000).toString("hex") })
  const backup = yield* Effect.forkChild(engine.backup(slow, { path, ...nothing }, quiet))
  yield* until(() => resticsOn(slow).length > 0)
  const [pid = 0] = resticsOn(slow)
  return { backup, pid, slow, path }
})

const digestOf = (path: string) =>
  Effect.promise(async () => {
    const hash = createHash("sha256")
    for await (const chunk of createReadStream(path)) hash.update(chunk)
    return hash.digest("hex")
  })

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))

const holder = fileURLToPath(new URL("hold-restic.ts", import.meta.url))

describeWithRestic("restic outside", () => {
  describeWithRadosgw("with a real server", () => {
    const shared = layer(S3.layer, { excludeTestServices: true, timeout: "60 seconds" })

    shared("its secrets", (it) => {
      it.effect("are on no command line, and in no file", () =>
        withRepository((engine, repository, folder) =>
          Effect.gen(function* () {
            const { backup, pid } = yield* underWay(engine, repository)
            const words = readFileSync(`/proc/${pid}/cmdline`, "utf8")
            assert.include(words, "backup")
            for (const secret of secretsOf(repository)) assert.notInclude(words, secret)
            yield* Fiber.interrupt(backup)
            const path = yield* folderOf({ "a.txt": "a" })
            yield* engine.backup(repository, { path, ...nothing }, quiet)
            const files = filesBelow(folder)
            assert.isAtLeast(files.length, 2)
            for (const file of files) {
              const text = readFileSync(file, "latin1")
              for (const secret of secretsOf(repository)) assert.notInclude(text, secret)
            }
          }),
        ),
      )
    })

    shared("its end", (it) => {
      it.effect("follows soon after ours, even after SIGKILL", () =>
        withRepository((engine, repository, folder) =>
          Effect.gen(function* () {
            const slow = yield* slowed(repository, /\/data\//)
            const path = yield* folderOf({ "a.txt": randomBytes(9_000).toString("hex") })
            const [access_key, secret_key] = secretsOf(repository)
            const keys = { access_key, secret_key, password }
            const given = JSON.stringify({ ...slow, ...keys })
            const argv = [holder, given, path, `${folder}/cache`]
            const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] })
            let is_under_way = false
            child.stdout.on("data", () => {
              is_under_way = true
            })
            yield* until(() => is_under_way)
            const [pid = 0] = resticsOn(slow)
            assert.isAbove(pid, 0)
            child.kill("SIGKILL")
            yield* until(() => !resticsOn(slow).includes(pid))
            assert.deepEqual(yield* engine.snapshots(repository), [])
          }),
        ),
      )

      it.effect("leaves no lock where it is interrupted", () =>
        withRepository((engine, repository) =>
          Effect.gen(function* () {
            const { backup, pid, slow } = yield* underWay(engine, repository)
            yield* Fiber.interrupt(backup)
            assert.notInclude(resticsOn(slow), pid)
            yield* engine.maintain(repository)
            assert.deepEqual(yield* engine.snapshots(repository), [])
          }),
        ),
      )
    })

    shared("a bucket", (it) => {
      it.effect("that refuses the keys is known within seconds", () =>
        withRepository((engine, repository) =>
          Effect.gen(function* () {
            for (const wrong of [
              { ...repository, secret_key: Redacted.make("wrong") },
              { ...repository, access_key: Redacted.make("UNKNOWN") },
              { ...repository, secret_key: Redacted.make("wrong"), region: "us-east-1" },
            ]) {
              for (const call of [engine.snapshots(wrong), engine.init(wrong)]) {
                const failure = yield* Effect.flip<unknown, unknown, never>(call)
                assert.instanceOf(failure, TrustAccessDenied)
              }
            }
          }).pipe(Effect.timeout("50 seconds")),
        ),
      )

      it.effect("that is not there is not made", () =>
        withRepository((engine, repository) =>
          Effect.gen(function* () {
            const gone = { ...repository, bucket: "no-such-bucket" }
            const failure = yield* Effect.flip(engine.init(gone))
            assert(failure instanceof EngineFailed)
            assert.include(failure.detail, "does not exist")
            assert.isTrue(failure.wrote_nothing)
          }),
        ),
      )

      it.effect("may be out of reach for a while, and no longer", () =>
        withRepository(
          (engine, repository) =>
            Effect.gen(function* () {
              let cuts = 0
              const endpoint = yield* s3Front(repository.endpoint, {
                isCut: ({ url }) => `${url}`.includes("/data/") && cuts++ < 3,
              })
              const path = yield* folderOf({ "a.txt": "a" })
              const folder = { path, ...nothing }
              yield* engine.backup({ ...repository, endpoint }, folder, quiet)
              assert.isAtLeast(cuts, 4)
              const away = yield* s3Front(repository.endpoint, { isCut: () => true })
              const failure = yield* Effect.flip(
                engine.snapshots({ ...repository, endpoint: away }),
              )
              assert(failure instanceof EngineFailed)
              assert.include(failure.detail, "did not respond for 8 s")
            }),
          { outage_s: 8 },
        ),
      )

      it.effect("is trusted by its own authority alone", () =>
        withRepository(
          (engine, repository, folder) =>
            Effect.gen(function* () {
              const tls = certificateOf(folder)
              const endpoint = yield* s3Front(repository.endpoint, { tls })
              const path = yield* folderOf({ "a.txt": "a" })
              const known = { ...repository, endpoint, ca_cert: tls.cert }
              yield* engine.backup(known, { path, ...nothing }, quiet)
              assert.lengthOf(yield* engine.snapshots(known), 1)
              for (const ca_cert of [null, certificateOf(folder).cert]) {
                const unknown = { ...known, ca_cert }
                assert.instanceOf(yield* Effect.flip(engine.snapshots(unknown)), EngineFailed)
              }
            }),
          { outage_s: 3 },
        ),
      )
    })

    shared("a tree", (it) => {
      it.effect("of 4,000 files comes back as it was", () =>
        withRepository((engine, repository) =>
          Effect.gen(function* () {
            const tree = Object.fromEntries(
              Array.from({ length: 4_000 }, (_, n) => [`d${n % 40}/s${n % 7}/f${n}`, `file ${n}`]),
            )
            const path = yield* folderOf(tree)
            const made = yield* engine.backup(repository, { path, ...nothing }, quiet)
            assert.equal(made.files, 4_000)
            const to = yield* emptyFolder
            const { engine_snapshot_id } = made
            const folder = { engine_snapshot_id, path: to, sub_path: null, is_exact: true }
            assert.equal((yield* engine.plan(repository, folder)).created, 4_000 + 40 + 280)
            yield* engine.restore(repository, folder, quiet)
            assert.deepEqual(yield* readTree(to), tree)
            assert.deepEqual((yield* engine.plan(repository, folder)).actions, [])
          }),
        ),
      )

      it.effect(
        "with a sparse file of 2 GiB comes back sparse",
        () =>
          withRepository((engine, repository) =>
            Effect.gen(function* () {
              const path = yield* emptyFolder
              const large = `${path}/large`
              yield* Effect.promise(() => writeFile(large, "begin"))
              truncateSync(large, 2 ** 31)
              yield* Effect.promise(async () => {
                const file = await open(large, "r+")
                await file.write(randomBytes(100_000), 0, 100_000, 2 ** 30)
                await file.close()
              })
              const made = yield* engine.backup(repository, { path, ...nothing }, quiet)
              assert.equal(made.bytes, 2 ** 31)
              const to = yield* emptyFolder
              const { engine_snapshot_id } = made
              const folder = { engine_snapshot_id, path: to, sub_path: "/large", is_exact: false }
              const done = yield* engine.restore(repository, folder, quiet)
              assert.deepEqual(done, { files: 1, bytes: 2 ** 31 })
              assert.isBelow(statSync(`${to}/large`).blocks * 512, 2 ** 27)
              assert.equal(yield* digestOf(`${to}/large`), yield* digestOf(large))
            }),
          ),
        large_ms_max,
      )
    })
  })
})

const certificateOf = (folder: string) =>
  certificateText({ folder, name: "s3", for: "IP:127.0.0.1" })
