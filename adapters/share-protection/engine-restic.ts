/**
 * The engine over restic: one process per call. Decision 0060 has its limitations.
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
import { type AddressRule, checkHost, type Resolve } from "#adapters/outside/address.ts"
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

/** restic is missing; the message says what to install. */
export class ResticMissing extends Schema.TaggedError<ResticMissing>()("ResticMissing", {
  message: Schema.String,
}) {}

export interface ResticOptions {
  /** A configured path; if empty or absent, restic is searched for. */
  readonly binary?: string
  /** Absolute path of restic's cache, private to this user. Its content is encrypted. */
  readonly cache_dir: string
  /** Limits of each call in KiB per second; 0 means unlimited. */
  readonly limits?: {
    readonly upload_kib_per_second: number
    readonly download_kib_per_second: number
  }
  /** Seconds that a bucket may be unreachable before a call fails; 120 if absent. */
  readonly outage_s?: number
  /** The allowed addresses of repositories; all if absent. */
  readonly isAllowed?: AddressRule
  /** Resolves names for the address check; the system's resolver unless a test replaces it. */
  readonly resolve?: Resolve
}

/**
 * Retry timeout for a bucket that responded before, in seconds: enough for a server to restart. A
 * job that waited longer would block its slot for nothing; restic's default is 15 minutes.
 */
const outage_s = 120

/** The format that `init` and `upgrade` create, as of restic 0.14. */
const newest_format = 2
/** Maximum snapshot ids of one call: a command line has 2 MiB. */
const ids_max = 1_000

/** The engine with repositories in buckets. */
export const engineRestic = (options: ResticOptions): Layer.Layer<Engine, ResticMissing> =>
  engineResticAt(options, placeOf)

/** The engine with repositories in any place that restic supports. */
export const engineResticAt = (
  options: ResticOptions,
  locate: (repository: Repository) => ResticPlace,
) =>
  Layer.effect(
    Engine,
    Effect.map(findRestic(options), (restic) => {
      const callOn = (repository: Repository): Call => {
        const call = makeCall(restic, locate(repository))
        if (options.isAllowed === undefined) return call
        const checked_address = checkEndpoint(repository, options.isAllowed, options.resolve).pipe(
          Effect.retry({ while: isTemporary, schedule: outageSchedule(restic) }),
          Effect.mapError(({ message }) => failsBefore(`The S3 service ${message}.`)),
        )
        return (...args) => Effect.andThen(checked_address, call(...args))
      }
      const { cache_dir } = restic
      return {
        version: restic.version,
        is_fips: false,
        init: (repository) => init(restic, callOn(repository)),
        backup: (repository, folder, onProgress) =>
          withProgress(onProgress, (onPart) =>
            backUpFolder(callOn(repository), cache_dir, folder, onPart),
          ),
        restore: (repository, folder, onProgress) =>
          withProgress(onProgress, (onPart) => restoreFolder(callOn(repository), folder, onPart)),
        plan: (repository, folder) => planRestore(callOn(repository), folder),
        prove: (repository, sample) => verifySample(callOn(repository), sample),
        forget: (repository, ids) => forget(callOn(repository), ids),
        maintain: (repository) => maintain(callOn(repository)),
        upgrade: (repository) => upgrade(callOn(repository)),
        snapshots: (repository) => snapshots(callOn(repository)),
        unlock: (repository) => Effect.asVoid(callOn(repository)({ args: ["unlock", "--json"] })),
      }
    }),
  )

/** Pause before a failed name resolution is retried, in milliseconds. */
const resolve_pause_ms = 1_000

/** A failed name server counts as an outage, like one of the bucket. */
const isTemporary = ({ code }: S3Failure) => code === "EAI_AGAIN"

const outageSchedule = ({ outage_ms }: Restic) =>
  Schedule.spaced(resolve_pause_ms).pipe(Schedule.upTo({ duration: outage_ms }))

/**
 * Checks the current addresses of the endpoint's name. restic resolves it again a moment later;
 * blocking a name that changes in between is left to the network (decision 0146).
 */
const checkEndpoint = (
  { endpoint, bucket, addressing_mode }: Repository,
  isAllowed: AddressRule,
  resolve?: Resolve,
) => {
  const { hostname } = new URL(endpoint)
  const host = addressing_mode === "virtual" ? `${bucket}.${hostname}` : hostname
  return Effect.tryPromise({ try: () => checkHost(isAllowed, host, resolve), catch: s3Failure })
}

const findRestic = Effect.fnUntraced(function* ({
  binary,
  cache_dir,
  limits,
  ...rest
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
      // Removes caches of repositories that have not been opened for a month.
      "--cleanup-cache",
      `--limit-upload=${upload_kib_per_second}`,
      `--limit-download=${download_kib_per_second}`,
    ],
    outage_ms: 1000 * (rest.outage_s ?? outage_s),
  }
  const no_place = { environment: {}, options: [], ca_cert: null, secrets: [] }
  let version: ReturnType<typeof readVersion>
  const sink = lineSink((line) => {
    version = readVersion(line) ?? version
  })
  yield* runRestic(restic, no_place, { args: ["version", "--json"], sink }).pipe(
    Effect.mapError(({ detail }) => new ResticMissing({ message: detail })),
  )
  return { ...restic, ...version }
})

/**
 * Runs work that reports progress synchronously, and passes the reports on one at a time. If they
 * arrive faster, only the latest is kept.
 */
const withProgress = <A, E>(
  onProgress: OnProgress,
  work: (onPart: (progress: EngineProgress) => void) => Effect.Effect<A, E>,
) =>
  Effect.gen(function* () {
    const reports = yield* Queue.sliding<EngineProgress>(1)
    const reporter = yield* Effect.forkChild(
      Effect.forever(Effect.flatMap(Queue.take(reports), onProgress)),
    )
    const done = yield* work((progress) => Queue.offerUnsafe(reports, progress))
    yield* Fiber.interrupt(reporter)
    return done
  })

/** The format in the repository's config; undefined if there is no repository. */
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

const foreign_repository = new TrustAccessDenied({
  detail:
    "The bucket has a repository with another password: it belongs to another target or project, " +
    "or its password was deleted from the vault. Use a separate bucket.",
})

/**
 * Checks first whether a repository exists, because restic would create a missing bucket without
 * object lock.
 */
const init = Effect.fnUntraced(function* ({ version, go_version }: Restic, call: Call) {
  const profile = `restic ${version}: AES-256-CTR, Poly1305-AES, scrypt by ${go_version}`
  const found = yield* Effect.mapError(findFormat(call), (failure) =>
    failure === wrongPassword ? foreign_repository : failure,
  )
  if (found !== undefined) return { format: found, profile }
  yield* call({ args: ["init", "--json"] })
  return { format: yield* formatOf(call), profile }
})

const forget = Effect.fnUntraced(function* (
  call: Call,
  engine_snapshot_ids: ReadonlyArray<string>,
) {
  // restic accepts partial ids and keywords such as "latest", and rejects an empty list.
  const ids = engine_snapshot_ids.filter(isWholeId)
  for (let at = 0; at < ids.length; at += ids_max) {
    yield* call({ args: ["forget", "--json", ...ids.slice(at, at + ids_max)] })
  }
})

/**
 * Without `--json`, because restic would be silent for long, and a silent process outlives ours.
 */
const maintain = Effect.fnUntraced(function* (call: Call) {
  // Data from before an upgrade is not compressed. Repeating this has no effect.
  const is_newest = (yield* formatOf(call)) >= newest_format
  yield* call({ args: ["prune", ...(is_newest ? ["--repack-uncompressed"] : [])] })
  yield* call({ args: ["check"] })
})

const upgrade = Effect.fnUntraced(function* (call: Call) {
  if ((yield* formatOf(call)) < newest_format)
    yield* call({ args: ["migrate", "--json", "upgrade_repo_v2"] })
  const to_format = yield* formatOf(call)
  if (to_format >= newest_format) return { to_format }
  const detail = `The repository has the format ${to_format} after its upgrade.`
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
