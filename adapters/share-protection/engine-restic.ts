/**
 * The engine as restic, each call a process of its own. What it cannot do is said in decision 0060.
 *
 * Source: document 2 §1, §7 svc.engine_error; DECISIONS, document 2, engine.
 */
import { mkdir } from "node:fs/promises"
import { Effect, Fiber, Layer, Queue, Schedule, Schema } from "effect"
import {
  Engine,
  EngineFailed,
  type EngineProgress,
  type OnProgress,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import { type AddressRule, judgedName, type Resolve } from "#adapters/outside/address.ts"
import { type S3Failure, s3Failure } from "#adapters/share-protection/s3/failure.ts"
import {
  backUpFolder,
  type Call,
  codes,
  failsBefore,
  instantOf,
  isScopeTag,
  isWholeId,
  lineSink,
  listSnapshots,
  makeCall,
  noRepository,
  placeOf,
  planRestore,
  type Restic,
  type ResticPlace,
  readConfig,
  readVersion,
  restoreFolder,
  runRestic,
  verifySample,
  wrongPassword,
} from "#restic"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { findBinary, missingBinary } from "../../launcher/binaries.mjs"

/** restic is not there; the message says what to install. */
export class ResticMissing extends Schema.TaggedError<ResticMissing>()("ResticMissing", {
  message: Schema.String,
}) {}

export interface ResticOptions {
  /** A configured path; empty or absent: restic is looked for. */
  readonly binary?: string
  /** Absolute, of this user alone: restic's cache, all of which is encrypted. */
  readonly cache_dir: string
  /** Of each call, in KiB per second; 0: none. */
  readonly limits?: {
    readonly upload_kib_per_second: number
    readonly download_kib_per_second: number
  }
  /** Seconds for which a bucket may be out of reach before a call fails; 120 when absent. */
  readonly outage_s?: number
  /** Where repositories may be; absent: anywhere. */
  readonly isAllowed?: AddressRule
  /** How names are looked up to be judged; the system's own way, unless a test has another. */
  readonly resolve?: Resolve
}

/**
 * A bucket that answered a moment ago is asked again for so long, in seconds: a server restarts in
 * that time, and a job that waits longer holds its slot for nothing. restic waits 15 minutes.
 */
const outage_s = 120

/** The format that `init` makes and `upgrade` brings, as of restic 0.14. */
const newest_format = 2
/** Ids of snapshots in one call: a command line has 2 MiB. */
const ids_max = 1_000

/** The engine over buckets. */
export const engineRestic = (options: ResticOptions): Layer.Layer<Engine, ResticMissing> =>
  engineResticAt(options, placeOf)

/** The engine over whatever restic calls a repository. */
export const engineResticAt = (
  options: ResticOptions,
  locate: (repository: Repository) => ResticPlace,
) =>
  Layer.effect(
    Engine,
    Effect.map(findRestic(options), (restic) => {
      const on = (repository: Repository): Call => {
        const call = makeCall(restic, locate(repository))
        if (options.isAllowed === undefined) return call
        const judged = reachable(repository, options.isAllowed, options.resolve).pipe(
          Effect.retry({ while: isPassing, schedule: untilOutage(restic) }),
          Effect.mapError(({ message }) => failsBefore(`The S3 service ${message}.`)),
        )
        return (...asked) => Effect.andThen(judged, call(...asked))
      }
      const { cache_dir } = restic
      return {
        version: restic.version,
        is_fips: false,
        init: (repository) => init(restic, on(repository)),
        backup: (repository, folder, onProgress) =>
          telling(onProgress, (onPart) => backUpFolder(on(repository), cache_dir, folder, onPart)),
        restore: (repository, folder, onProgress) =>
          telling(onProgress, (onPart) => restoreFolder(on(repository), folder, onPart)),
        plan: (repository, folder) => planRestore(on(repository), folder),
        prove: (repository, sample) => verifySample(on(repository), sample),
        forget: (repository, ids) => forget(on(repository), ids),
        maintain: (repository) => maintain(on(repository)),
        upgrade: (repository) => upgrade(on(repository)),
        snapshots: (repository) => snapshots(on(repository)),
        unlock: (repository) => Effect.asVoid(on(repository)({ args: ["unlock", "--json"] })),
      }
    }),
  )

/** How long it is waited before a name server that failed is asked again, in milliseconds. */
const name_pause_ms = 1_000

/** A name server that does not answer is an outage as one of the bucket is. */
const isPassing = ({ code }: S3Failure) => code === "EAI_AGAIN"

const untilOutage = ({ outage_ms }: Restic) =>
  Schedule.spaced(name_pause_ms).pipe(Schedule.upTo({ duration: outage_ms }))

/**
 * Judges what the endpoint's name means now. restic looks it up again by itself, a moment later: a
 * name that means something else by then is for the network to stop (decision 0146).
 */
const reachable = (
  { endpoint, bucket, addressing_mode }: Repository,
  isAllowed: AddressRule,
  resolve?: Resolve,
) => {
  const { hostname } = new URL(endpoint)
  const host = addressing_mode === "virtual" ? `${bucket}.${hostname}` : hostname
  return Effect.tryPromise({ try: () => judgedName(isAllowed, host, resolve), catch: s3Failure })
}

const findRestic = Effect.fnUntraced(function* ({
  binary,
  cache_dir,
  limits,
  ...more
}: ResticOptions) {
  // An empty setting means "not configured".
  const configured = { configured: binary || undefined }
  const found = findBinary("restic", configured)
  if (!found) return yield* new ResticMissing({ message: missingBinary("restic", configured) })
  yield* Effect.promise(() => mkdir(cache_dir, { recursive: true, mode: 0o700 }))
  const { upload_kib_per_second = 0, download_kib_per_second = 0 } = limits ?? {}
  const restic: Restic = {
    binary: found.path,
    version: found.version,
    go_version: "",
    cache_dir,
    options: [
      // Folders of repositories that were not opened for a month.
      "--cleanup-cache",
      `--limit-upload=${upload_kib_per_second}`,
      `--limit-download=${download_kib_per_second}`,
    ],
    outage_ms: 1000 * (more.outage_s ?? outage_s),
  }
  const nowhere = { environment: {}, options: [], ca_cert: null, secrets: [] }
  let said: ReturnType<typeof readVersion>
  const sink = lineSink((line) => {
    said = readVersion(line) ?? said
  })
  yield* runRestic(restic, nowhere, { args: ["version", "--json"], sink }).pipe(
    Effect.mapError(({ detail }) => new ResticMissing({ message: detail })),
  )
  return { ...restic, ...said }
})

/** Runs what tells its parts at once, and hands them on one after another: the latest, if late. */
const telling = <A, E>(
  onProgress: OnProgress,
  work: (onPart: (progress: EngineProgress) => void) => Effect.Effect<A, E>,
) =>
  Effect.gen(function* () {
    const parts = yield* Queue.sliding<EngineProgress>(1)
    const teller = yield* Effect.forkChild(
      Effect.forever(Effect.flatMap(Queue.take(parts), onProgress)),
    )
    const done = yield* work((progress) => Queue.offerUnsafe(parts, progress))
    yield* Fiber.interrupt(teller)
    return done
  })

/** The repository's format, by its own word; undefined where there is no repository. */
const findFormat = Effect.fnUntraced(function* (call: Call) {
  const lines: Array<string> = []
  const args = ["cat", "config", "--json", "--no-lock"]
  const sink = lineSink((line) => lines.push(line))
  const { code } = yield* call({ args, sink }, codes.no_repository)
  if (code === codes.no_repository) return undefined
  const config = readConfig(lines.join("\n"))
  return config?.version ?? (yield* failsBefore("The repository's config cannot be read."))
})

const formatOf = Effect.fnUntraced(function* (call: Call) {
  return (yield* findFormat(call)) ?? (yield* noRepository)
})

const anothersRepository = new TrustAccessDenied({
  detail:
    "The bucket has a repository that another password opens: that of a target that is there, of " +
    "another project, or of one whose password is gone from the vault. Use a bucket of its own.",
})

/** Looked for first: restic makes a missing bucket, without the lock that it was to have. */
const init = Effect.fnUntraced(function* ({ version, go_version }: Restic, call: Call) {
  const profile = `restic ${version}: AES-256-CTR, Poly1305-AES, scrypt by ${go_version}`
  const found = yield* Effect.mapError(findFormat(call), (failure) =>
    failure === wrongPassword ? anothersRepository : failure,
  )
  if (found !== undefined) return { format: found, profile }
  yield* call({ args: ["init", "--json"] })
  return { format: yield* formatOf(call), profile }
})

const forget = Effect.fnUntraced(function* (
  call: Call,
  engine_snapshot_ids: ReadonlyArray<string>,
) {
  // restic would take a part of an id, or a word, for a snapshot; and no id at all for a mistake.
  const ids = engine_snapshot_ids.filter(isWholeId)
  for (let at = 0; at < ids.length; at += ids_max) {
    yield* call({ args: ["forget", "--json", ...ids.slice(at, at + ids_max)] })
  }
})

/** Without `--json`, by which restic would say nothing for long: a silent one outlives us. */
const maintain = Effect.fnUntraced(function* (call: Call) {
  // What was written before an upgrade is not compressed; again it finds nothing to do.
  const is_newest = (yield* formatOf(call)) >= newest_format
  yield* call({ args: ["prune", ...(is_newest ? ["--repack-uncompressed"] : [])] })
  yield* call({ args: ["check"] })
})

const upgrade = Effect.fnUntraced(function* (call: Call) {
  if ((yield* formatOf(call)) < newest_format)
    yield* call({ args: ["migrate", "--json", "upgrade_repo_v2"] })
  const to_format = yield* formatOf(call)
  if (to_format >= newest_format) return { to_format }
  const detail = `The repository is of format ${to_format} after its upgrade.`
  return yield* new EngineFailed({ detail, wrote_nothing: false })
})

const snapshots = Effect.fnUntraced(function* (call: Call) {
  return (yield* listSnapshots(call)).map(({ id, time, hostname, tags, summary }) => ({
    engine_snapshot_id: id,
    taken_at: instantOf(time),
    tags: (tags ?? []).filter((tag) => !isScopeTag(tag)),
    host: hostname,
    bytes: summary?.total_bytes_processed ?? 0,
    stored_bytes: summary?.data_added_packed ?? 0,
    files: summary?.total_files_processed ?? 0,
  }))
})
