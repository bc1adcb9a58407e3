import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Engine, EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { engineRestic } from "#adapters/share-protection/engine-restic.ts"
import { emptyFolder } from "../../../world/folder.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"
import {
  backUp,
  host,
  id,
  quiet,
  repository,
  says,
  secrets,
  summary,
  withScript,
} from "../../../world/share-protection/restic/fake.ts"

describe("what restic is given", () => {
  const keep = ['{ pwd; printf "%s\\n" "$@"; echo --; env; } >> "$calls"', says(summary)]

  it.live("is secrets by its environment, and nothing of ours but PATH", () =>
    withScript(keep, (folder) =>
      Effect.gen(function* () {
        process.env.AWS_CA_BUNDLE = "/somewhere"
        yield* backUp({ tags: ["backup=1"] })
        delete process.env.AWS_CA_BUNDLE
        const [words = "", environment = ""] = readFileSync(`${folder}/calls`, "utf8").split("--\n")
        for (const secret of Object.values(secrets)) assert.notInclude(words, secret)
        assert.include(environment, `RESTIC_PASSWORD=${secrets.password}`)
        assert.include(environment, `AWS_SECRET_ACCESS_KEY=${secrets.secret_key}`)
        const names = environment.match(/^[A-Z]\w*(?==)/gm) ?? []
        assert.sameMembers(
          names.filter((name) => !["PWD", "SHLVL", "OLDPWD"].includes(name)),
          [
            "PATH",
            "HOME",
            "TMPDIR",
            "TZ",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "RESTIC_REPOSITORY",
            "RESTIC_PASSWORD",
            "RESTIC_CACHE_DIR",
            "RESTIC_PROGRESS_FPS",
          ],
        )
      }),
    ),
  )

  it.live("is the folder to work in, the share as the host, and each tag", () =>
    withScript(keep, (folder) =>
      Effect.gen(function* () {
        const path = yield* emptyFolder
        yield* backUp({ path, tags: ["backup=1", "share=2"], exclude_patterns: ["/a", "-b"] })
        const words = readFileSync(`${folder}/calls`, "utf8").split("--\n")[0]?.split("\n") ?? []
        assert.equal(words[0], path)
        assert.includeMembers(words, [
          "backup",
          "--json",
          `--host=${host}`,
          "--group-by=host",
          "--tag=backup=1",
          "--tag=share=2",
          `--exclude=${path}/a`,
          `--exclude=${path}/**/-b`,
          ".",
        ])
      }).pipe(Effect.scoped),
    ),
  )

  it.live("is the limits of the bandwidth", () =>
    withScript(
      keep,
      (folder) =>
        Effect.gen(function* () {
          yield* backUp()
          const words = readFileSync(`${folder}/calls`, "utf8").split("\n")
          assert.includeMembers(words, ["--limit-upload=12", "--limit-download=34"])
        }),
      { limits: { upload_kib_per_second: 12, download_kib_per_second: 34 } },
    ),
  )

  it.live("is never a word that restic uses for another snapshot", () =>
    withScript(keep, (folder) =>
      Effect.gen(function* () {
        const engine = yield* Engine
        yield* engine.forget(repository, ["latest", "abc", "--keep-last=1"])
        const path = yield* emptyFolder
        for (const engine_snapshot_id of ["latest", "aaaa", `${id}:/home`]) {
          const restore = { engine_snapshot_id, path, sub_path: null, is_exact: true }
          const sample = { engine_snapshot_id, path, files_max: 1, bytes_max: 1, seed: "" }
          for (const call of [
            engine.restore(repository, restore, quiet),
            engine.plan(repository, restore),
            engine.prove(repository, sample),
          ]) {
            const failure = yield* Effect.flip<unknown, unknown, never>(call)
            assert(failure instanceof EngineFailed)
            assert.isTrue(failure.wrote_nothing)
          }
        }
        assert.isFalse(existsSync(`${folder}/calls`))
      }).pipe(Effect.scoped),
    ),
  )
})

describe("a run that is interrupted", () => {
  const begun = Effect.fnUntraced(function* () {
    const is_begun = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(
      backUp({}, () => Effect.asVoid(Deferred.succeed(is_begun, undefined))),
    )
    yield* Deferred.await(is_begun)
    return fiber
  })
  const status = says({ message_type: "status", percent_done: 0.1 })
  const isAlive = (pid: number) => existsSync(`/proc/${pid}`)

  it.live("ends when restic has tidied up after itself", () =>
    withScript(
      [
        `trap 'sleep 0.2; echo tidied >> "$calls"; exit 130' TERM`,
        status,
        "while :; do sleep 0.05; done",
      ],
      (folder) =>
        Effect.gen(function* () {
          yield* Fiber.interrupt(yield* begun())
          assert.equal(readFileSync(`${folder}/calls`, "utf8"), "tidied\n")
        }),
    ),
  )

  it.live("kills a restic that does not end", () =>
    withScript(
      [`trap '' TERM`, 'echo $$ >> "$calls"', status, "while :; do sleep 0.05; done"],
      (folder) =>
        Effect.gen(function* () {
          yield* Fiber.interrupt(yield* begun())
          const pid = Number(readFileSync(`${folder}/calls`, "utf8"))
          assert.isAtLeast(pid, 2)
          assert.isFalse(isAlive(pid))
        }),
    ),
  )
})

/** The targets of this process's file descriptors. */
const openFiles = () =>
  readdirSync("/proc/self/fd").map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      // The descriptor that was used to read the list.
      return ""
    }
  })

describe("the authorities of a bucket", () => {
  it.live("are read from a file that is nowhere any more", () =>
    withScript(
      [
        'for word in "$@"; do',
        '  case "$word" in --cacert=*) cat "$(echo "$word" | cut -d= -f2)" >> "$calls";; esac',
        "done",
      ],
      (folder) =>
        Effect.gen(function* () {
          const ca_cert = "-----BEGIN CERTIFICATE-----\nMIIB\n"
          yield* (yield* Engine).unlock({ ...repository, ca_cert })
          assert.equal(readFileSync(`${folder}/calls`, "utf8"), ca_cert)
          assert.deepEqual(readdirSync(`${folder}/cache`), [])
          assert.notInclude(openFiles().join("\n"), folder)
        }),
    ),
  )
})

describe("restic itself", () => {
  it.live("is asked for its version, and has a folder of its own", () =>
    withScript([], (folder) =>
      Effect.gen(function* () {
        const { version, is_fips } = yield* Engine
        assert.deepEqual([version, is_fips], ["0.19.1", false])
        assert.equal(statSync(`${folder}/cache`).mode & 0o777, 0o700)
      }),
    ),
  )

  it.live("is missing where the configured path has none, with a word what to do", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const layer = engineRestic({ binary: `${folder}/none`, cache_dir: `${folder}/cache` })
      const failure = yield* Effect.flip(Effect.provide(Effect.asVoid(Engine), layer))
      assert.include(failure.message, "restic")
      assert.include(failure.message, folder)
    }).pipe(Effect.scoped),
  )

  it.live("fails a call where it is gone since", () =>
    withScript(['rm "$0"'], () =>
      Effect.gen(function* () {
        const { unlock } = yield* Engine
        yield* unlock(repository)
        const failure = yield* Effect.flip(unlock(repository))
        assert(failure instanceof EngineFailed)
        assert.isTrue(failure.wrote_nothing)
        assert.include(failure.detail, "ENOENT")
      }),
    ),
  )
})
