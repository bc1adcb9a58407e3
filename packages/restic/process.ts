/**
 * Runs restic as a child process without a shell, and stops it on interruption.
 *
 * restic does not outlive this process for long: it writes a line each second, and ends with
 * SIGPIPE once its output has no reader.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Redacted } from "effect"
import { EngineFailed, type Repository } from "#actors/share-protection/ports/engine.ts"
import { lineSink, type Sink } from "./lines.ts"
import { newStderrParser, type StderrSummary } from "./output.ts"

/** An installed restic. */
export interface Restic {
  readonly binary: string
  readonly version: string
  /** Version of the Go compiler, whose library contains the ciphers. */
  readonly go_version: string
  /** Absolute path of the folder for restic's cache and temporary files, all encrypted. */
  readonly cache_dir: string
  /** Options for every command. */
  readonly options: ReadonlyArray<string>
  /** Maximum time with nothing but retries, in milliseconds. */
  readonly outage_ms: number
}

/** The location and credentials of a repository. */
export interface ResticPlace {
  /** Environment of the child, the only place for secrets. */
  readonly environment: Readonly<Record<string, string>>
  readonly options: ReadonlyArray<string>
  /** Certificate authorities (PEM) that must have signed the server's certificate. */
  readonly ca_cert: string | null
  /** Removed from error messages. */
  readonly secrets: ReadonlyArray<string>
}

export interface ResticRun {
  readonly args: ReadonlyArray<string>
  /** Absolute path of the working directory. */
  readonly folder?: string
  readonly input?: Buffer
  readonly sink?: Sink
}

/** The result of a run; `code` is null if a signal ended it. */
export interface Ended extends StderrSummary {
  readonly code: number | null
}

/** Time from SIGTERM to SIGKILL: enough for restic to remove its lock; an agent waits 6 s. */
const stop_ms = 5_000

/** The child's descriptor for the authorities, after its three streams. */
const ca_descriptor = 3

/** Runs restic until it ends, with any exit code. An interruption stops it and waits for it. */
export const runRestic = (restic: Restic, place: ResticPlace, run: ResticRun) =>
  Effect.acquireUseRelease(start(restic, place, run), ({ ended }) => Deferred.await(ended), stop)

interface Running {
  readonly child: ChildProcess
  readonly ended: Deferred.Deferred<Ended>
}

const start = (restic: Restic, place: ResticPlace, run: ResticRun) =>
  Effect.callback<Running, EngineFailed>((resume) => {
    const fail = (code: unknown) => {
      const detail = `restic could not be started: ${code}`
      resume(Effect.fail(new EngineFailed({ detail, wrote_nothing: true })))
    }
    try {
      const child = spawnRestic(restic, place, run)
      const ended = Deferred.makeUnsafe<Ended>()
      const stderr = newStderrParser(restic.outage_ms, () => child.kill("SIGTERM"))
      child.stdout.on("data", run.sink ?? (() => {}))
      child.stderr.on("data", lineSink(stderr.onLine))
      // restic may end before it has read all input.
      child.stdin.on("error", () => {})
      child.stdin.end(run.input)
      child.once("error", (error) => fail(codeOf(error)))
      // Not "exit": output may still be in transit then.
      child.once("close", (code) => {
        Deferred.doneUnsafe(ended, Effect.succeed({ ...stderr.end(), code }))
      })
      child.once("spawn", () => resume(Effect.succeed({ child, ended })))
    } catch (error) {
      // Only the code: Node's message would include the environment.
      fail(codeOf(error))
    }
  })

const codeOf = (error: unknown) =>
  error instanceof Error && "code" in error ? String(error.code) : "unknown"

const spawnRestic = (restic: Restic, place: ResticPlace, { args, folder }: ResticRun) => {
  const authorities = openAuthorities(restic, place)
  try {
    return spawn(restic.binary, [...restic.options, ...place.options, ...args], {
      cwd: folder ?? restic.cache_dir,
      env: environmentOf(restic, place),
      stdio: ["pipe", "pipe", "pipe", ...(authorities === undefined ? [] : [authorities])],
      // A separate process group, so that Ctrl-C reaches it only through us.
      detached: true,
    }) as ChildProcessWithoutNullStreams // The first three streams are pipes.
  } finally {
    if (authorities !== undefined) closeSync(authorities)
  }
}

/** Passes on PATH only: restic must not see the rest of our environment. */
const environmentOf = ({ cache_dir }: Restic, { environment }: ResticPlace) => ({
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: cache_dir,
  TMPDIR: cache_dir,
  TZ: "UTC",
  // A separate folder, because restic never backs up its own cache.
  RESTIC_CACHE_DIR: join(cache_dir, "cache"),
  RESTIC_PROGRESS_FPS: "1",
  ...environment,
})

/** An unlinked file: restic accepts authorities only by path, and does not read a pipe. */
const openAuthorities = ({ cache_dir }: Restic, { ca_cert }: ResticPlace) => {
  if (ca_cert === null) return undefined
  const path = join(cache_dir, `authorities-${randomUUID()}`)
  writeFileSync(path, ca_cert, { mode: 0o600, flag: "wx" })
  const descriptor = openSync(path, "r")
  unlinkSync(path)
  return descriptor
}

/** The option that passes the authorities to restic. */
const authorities_option = `--cacert=/dev/fd/${ca_descriptor}`

const stop = ({ child, ended }: Running) =>
  Effect.gen(function* () {
    if (Deferred.isDoneUnsafe(ended)) return
    child.kill("SIGTERM")
    const end = yield* Effect.timeoutOption(Deferred.await(ended), stop_ms)
    if (end._tag === "Some") return
    yield* Effect.logWarning(`restic did not stop within ${stop_ms} ms and was killed`)
    child.kill("SIGKILL")
    yield* Deferred.await(ended)
  })

const lookups = { path: "path", virtual: "dns" } as const

/**
 * The location of a repository in a bucket. Its name is in the environment too, because any user of
 * the machine can read arguments.
 */
export const placeOf = (repository: Repository): ResticPlace => {
  const { endpoint, bucket, region, addressing_mode, ca_cert } = repository
  const access_key = Redacted.value(repository.access_key)
  const secret_key = Redacted.value(repository.secret_key)
  const password = Redacted.value(repository.password)
  return {
    environment: {
      RESTIC_REPOSITORY: `s3:${endpoint.replace(/\/+$/, "")}/${bucket}`,
      RESTIC_PASSWORD: password,
      AWS_ACCESS_KEY_ID: access_key,
      AWS_SECRET_ACCESS_KEY: secret_key,
      ...(region === null ? {} : { AWS_DEFAULT_REGION: region }),
    },
    options: [
      `--option=s3.bucket-lookup=${lookups[addressing_mode]}`,
      ...(ca_cert === null ? [] : [authorities_option]),
    ],
    ca_cert,
    secrets: [secret_key, access_key, password],
  }
}
