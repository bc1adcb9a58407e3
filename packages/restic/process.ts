/**
 * One run of restic: started without a shell, listened to, and ended with whoever waits for it.
 *
 * No restic outlives this process for long: it writes a line each second, and a line that nobody
 * can read any more ends it (SIGPIPE).
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { lineSink, type Sink } from "./lines.ts"
import { type Heard, newEar } from "./output.ts"

/** A restic that is there. */
export interface Restic {
  readonly binary: string
  readonly version: string
  /** Of the compiler, whose library the ciphers are from. */
  readonly go_version: string
  /** Absolute: where restic has its cache and its temporary files, all of which is encrypted. */
  readonly cache_dir: string
  /** Options of every call. */
  readonly options: ReadonlyArray<string>
  /** How long nothing but repeated requests may be heard, in milliseconds. */
  readonly outage_ms: number
}

/** Where a repository is, and what opens it. */
export interface ResticPlace {
  /** What holds secrets is here, and nowhere else. */
  readonly environment: Readonly<Record<string, string>>
  readonly options: ReadonlyArray<string>
  /** Authorities (PEM) by whom alone the server may prove itself. */
  readonly ca_cert: string | null
  /** To be kept out of what is told. */
  readonly secrets: ReadonlyArray<string>
}

export interface ResticRun {
  readonly words: ReadonlyArray<string>
  /** Where it works; absolute. */
  readonly folder?: string
  readonly input?: Buffer
  readonly sink?: Sink
}

/** How a run ended; `code` is null where a signal ended it. */
export interface Ended extends Heard {
  readonly code: number | null
}

/** Milliseconds from SIGTERM to SIGKILL: it takes its lock away by then, and an agent waits 6 s. */
const stop_ms = 5_000

/** Where the authorities are for the child: the descriptor after its three streams. */
const ca_descriptor = 3

/** Runs restic to its end, whatever its code. Interrupted, it is stopped, and has ended. */
export const runRestic = (restic: Restic, place: ResticPlace, run: ResticRun) =>
  Effect.acquireUseRelease(start(restic, place, run), ({ ended }) => Deferred.await(ended), stop)

interface Running {
  readonly child: ChildProcess
  readonly ended: Deferred.Deferred<Ended>
}

const start = (restic: Restic, place: ResticPlace, run: ResticRun) =>
  Effect.callback<Running, EngineFailed>((resume) => {
    const fail = (code: unknown) => {
      const detail = `restic cannot be run: ${code}`
      resume(Effect.fail(new EngineFailed({ detail, wrote_nothing: true })))
    }
    try {
      const child = spawnRestic(restic, place, run)
      const ended = Deferred.makeUnsafe<Ended>()
      const ear = newEar(restic.outage_ms, () => child.kill("SIGTERM"))
      child.stdout.on("data", run.sink ?? (() => {}))
      child.stderr.on("data", lineSink(ear.onLine))
      // It may end before it has read all.
      child.stdin.on("error", () => {})
      child.stdin.end(run.input)
      child.once("error", (error) => fail(codeOf(error)))
      // Not "exit": its last words may still be on their way then.
      child.once("close", (code) => {
        Deferred.doneUnsafe(ended, Effect.succeed({ ...ear.end(), code }))
      })
      child.once("spawn", () => resume(Effect.succeed({ child, ended })))
    } catch (error) {
      // Only the code: Node's own message repeats what it was given, the environment too.
      fail(codeOf(error))
    }
  })

const codeOf = (error: unknown) =>
  error instanceof Error && "code" in error ? String(error.code) : "unknown"

const spawnRestic = (restic: Restic, place: ResticPlace, { words, folder }: ResticRun) => {
  const authorities = openAuthorities(restic, place)
  try {
    return spawn(restic.binary, [...restic.options, ...place.options, ...words], {
      cwd: folder ?? restic.cache_dir,
      env: environmentOf(restic, place),
      stdio: ["pipe", "pipe", "pipe", ...(authorities === undefined ? [] : [authorities])],
      // Of its own, so that a Ctrl-C at the terminal reaches it only through us.
      detached: true,
    }) as ChildProcessWithoutNullStreams // Its first three streams are pipes.
  } finally {
    if (authorities !== undefined) closeSync(authorities)
  }
}

/** Of ours only PATH: what else this process was given is not the engine's to read. */
const environmentOf = ({ cache_dir }: Restic, { environment }: ResticPlace) => ({
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: cache_dir,
  TMPDIR: cache_dir,
  TZ: "UTC",
  // A folder of its own: restic backs up nothing that is in its cache.
  RESTIC_CACHE_DIR: join(cache_dir, "cache"),
  RESTIC_PROGRESS_FPS: "1",
  ...environment,
})

/** A file without a name: restic takes authorities only by one, and reads a socket by none. */
const openAuthorities = ({ cache_dir }: Restic, { ca_cert }: ResticPlace) => {
  if (ca_cert === null) return undefined
  const path = join(cache_dir, `authorities-${randomUUID()}`)
  writeFileSync(path, ca_cert, { mode: 0o600, flag: "wx" })
  const descriptor = openSync(path, "r")
  unlinkSync(path)
  return descriptor
}

/** What names the authorities to restic. */
export const authorities_option = `--cacert=/dev/fd/${ca_descriptor}`

const stop = ({ child, ended }: Running) =>
  Effect.gen(function* () {
    if (Deferred.isDoneUnsafe(ended)) return
    child.kill("SIGTERM")
    const end = yield* Effect.timeoutOption(Deferred.await(ended), stop_ms)
    if (end._tag === "Some") return
    yield* Effect.logWarning(`restic did not stop within ${stop_ms} ms: killed`)
    child.kill("SIGKILL")
    yield* Deferred.await(ended)
  })
