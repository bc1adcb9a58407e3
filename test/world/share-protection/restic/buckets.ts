/**
 * The real engine's test setup: buckets of a real server, and ways to interrupt a restic in one.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { Effect, Redacted, Schedule } from "effect"
import { Engine, type Repository } from "#actors/share-protection/ports/engine.ts"
import { placeOf } from "#restic"
import type { EnginePlace } from "../../../contract/share-protection/engine-place.ts"
import { setMode } from "../../folder.ts"
import type { S3, TestBucketOptions, TestRadosgw } from "../../programs/radosgw.ts"
import { restic } from "../../programs/restic.ts"
import { s3Front } from "../../programs/s3-front.ts"

/** Longer than the engine calls that a test makes meanwhile. */
const wait_ms = 12_000

export const password = "password-of-the-repository"

export const repositoryOn = (s3: TestRadosgw, options?: TestBucketOptions) =>
  Effect.map(
    s3.bucket(options),
    (bucket): Repository => ({ ...bucket, password: Redacted.make(password) }),
  )

/** Runs restic itself on the repository; throws if it fails. */
const resticOn = (repository: Repository, ...words: ReadonlyArray<string>) => {
  const { environment, options } = placeOf(repository)
  const env = { PATH: process.env.PATH, RESTIC_PROGRESS_FPS: "1", ...environment }
  return execFileSync(restic, [...options, "--no-cache", ...words], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 2 ** 28,
  })
}

/**
 * Ids of the restic processes that use this repository at this endpoint. Buckets of other test
 * files have the same names, but on their own servers.
 */
export const resticsOn = (repository: Repository) => {
  const line = `RESTIC_REPOSITORY=${placeOf(repository).environment.RESTIC_REPOSITORY}`
  return readdirSync("/proc").flatMap((name) => {
    try {
      const is_ours = readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(line)
      return is_ours ? [Number(name)] : []
    } catch {
      // Not a process, or one that has just exited.
      return []
    }
  })
}

/** Waits until the condition holds, up to a limit. */
export const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: Boolean, schedule: Schedule.spaced(20) }),
    Effect.timeout("30 seconds"),
  )

/** The same bucket, with slow writes to these paths. */
export const slowed = (repository: Repository, paths: RegExp) =>
  Effect.map(
    s3Front(repository.endpoint, { slow: { paths, wait_ms } }),
    (endpoint): Repository => ({ ...repository, endpoint }),
  )

/** Repositories on this server, with or without object lock. */
export const engineBuckets = (s3: S3["Service"], options: TestBucketOptions): EnginePlace => {
  const bucket = repositoryOn(s3, options)
  const kill: EnginePlace["kill"] = Effect.fnUntraced(function* (repository, folder) {
    const slow = yield* slowed(repository, /\/snapshots\//)
    let is_under_way = false
    const see = () =>
      Effect.sync(() => {
        is_under_way = true
      })
    const backup = (yield* Engine).backup(slow, folder, see)
    const shoot = Effect.sync(() => {
      for (const pid of resticsOn(slow)) process.kill(pid, "SIGKILL")
    })
    const shot = Effect.andThen(
      until(() => is_under_way),
      shoot,
    )
    yield* Effect.all([Effect.flip(backup), shot], { concurrency: 2 })
  })
  return {
    bucket,
    old: Effect.tap(bucket, (repository) =>
      Effect.sync(() => resticOn(repository, "init", "--repository-version", "1")),
    ),
    slow: Effect.flatMap(bucket, (repository) => slowed(repository, /\/data\//)),
    kill,
    hide: (path) => setMode(path, 0),
  }
}
