/**
 * A job's walk: what a worker does outside, step by step, for each type of job.
 *
 * Each step may be killed anywhere, and be walked again by another attempt: what is made for a job
 * is found again by the job's id, and what an attempt left behind hinders no later one.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, engine, workers, preflight.
 */
import { Duration, Effect, Redacted, Schema } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/buckets.ts"
import {
  Engine,
  EngineFailed,
  type EngineFailure,
  type OnProgress,
  type Repository,
} from "#actors/share-protection/engine.ts"
import type { Result } from "#actors/share-protection/job-course.ts"
import { type Share, Shares } from "#actors/share-protection/shares.ts"
import { tagsOf } from "#actors/share-protection/snapshot-tag.ts"
import { type Delegation, Trusts } from "#actors/share-protection/trusts.ts"
import { Vault } from "#actors/share-protection/vault.ts"
import type { JobStep } from "#schemas/share-protection/job.ts"
import type {
  BackupOrder,
  EnrollmentOrder,
  JobOrder,
  RestoreOrder,
} from "#schemas/share-protection/job-order.ts"
import {
  BackendUnavailable,
  NetworkStrategyPrecondition,
  NotFound,
  RepositoryLocked,
  type SnapshotStrategyPrecondition,
  type TargetPreflightFailed,
  type TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { UsageStats } from "#schemas/share-protection/target.ts"

/** A job holds its slot and its lease no longer than this for each thing that it takes back. */
const cleanup_timeout = Duration.minutes(1)

/** Tries to let go of what was made for a job, before it is left to the orphan sweep. */
const release_tries_max = 3

export interface WalkOptions {
  readonly shape: "A" | "B"
  /** engine.require_fips_profile */
  readonly require_fips_profile: boolean
  /** engine.subprocess_timeout */
  readonly subprocess_timeout_seconds: number
  /** A new password of at least 128 random bits. */
  readonly new_password: Effect.Effect<Redacted.Redacted<string>>
}

/** The job is not this worker's any more: whatever it does from here nobody waits for. */
export class Dropped extends Schema.TaggedError<Dropped>()("Dropped", { detail: Schema.String }) {}

export type WalkFailure =
  | BackendUnavailable
  | EngineFailure
  | NetworkStrategyPrecondition
  | NotFound
  | SnapshotStrategyPrecondition
  | TargetPreflightFailed
  | TrustAccessDenied

/** What a walk tells on its way. */
export interface Road {
  /** Says that the job enters the step; nothing of the step is done before. */
  readonly enter: (step: JobStep) => Effect.Effect<void, Dropped>
  readonly onProgress: OnProgress
  /** From here on this is kept out of everything that is told. */
  readonly hide: (secret: Redacted.Redacted<string>) => void
  /** The repository is open. */
  readonly opened: (repository: Repository) => void
  readonly measured: (usage_stats: UsageStats) => Effect.Effect<void, Dropped>
}

type Ports = Buckets | Engine | Shares | Trusts | Vault
type Walk = Effect.Effect<Result, Dropped | WalkFailure, Ports>

/** Walks a job that has begun, from its first step to the end of its last. */
export const walk = (order: JobOrder, road: Road, options: WalkOptions): Walk => {
  switch (order.job_type) {
    case "backup":
      return backUp(order, road, options)
    case "restore":
      return restore(order, road, options)
    case "target_enroll":
      return enroll(order, road, options)
    case "retention": {
      const { job_type, forget } = order
      const ids = forget.map(({ engine_snapshot_id }) => engine_snapshot_id)
      return inRepository(order, road, options, (engine, repository) =>
        Effect.as(engine.forget(repository, ids), { job_type }),
      )
    }
    case "maintenance": {
      const { job_type } = order
      return inRepository(order, road, options, (engine, repository) =>
        Effect.as(engine.maintain(repository), { job_type }),
      )
    }
    case "repo_format_upgrade": {
      const { job_type } = order
      return inRepository(order, road, options, (engine, repository) =>
        Effect.map(engine.upgrade(repository), (made) => ({ job_type, made })),
      )
    }
  }
}

const backUp = Effect.fnUntraced(function* (
  order: typeof BackupOrder.Type,
  road: Road,
  options: WalkOptions,
) {
  const { job_id, backup_id, project_id, share_id, policy_id } = order
  const { include_patterns, exclude_patterns } = order
  const shares = yield* Shares
  const engine = yield* Engine
  const share = yield* availableShare(order)
  yield* road.enter("provisioning_source")
  // Before it is made, since it may be half made when this is interrupted.
  yield* Effect.addFinalizer(() => letGo(job_id))
  const { path, crash_consistent } = yield* shares.prepare(share, {
    job_id,
    crash_consistent: order.crash_consistent_wanted,
  })
  const repository = yield* connect(order, road)
  yield* road.enter("transferring")
  const tags = tagsOf({ backup_id, project_id, share_id, policy_id, crash_consistent })
  const folder = { path, host: share_id, tags, include_patterns, exclude_patterns }
  const made = yield* limited(options, engine.backup(repository, folder, road.onProgress))
  const { engine_snapshot_id } = made
  return yield* Effect.gen(function* () {
    yield* road.enter("finalizing")
    const protected_until = yield* protectedUntil(repository)
    yield* measure(repository, road)
    yield* road.enter("releasing")
    return { job_type: "backup", made: { ...made, crash_consistent, protected_until } } as const
  }).pipe(Effect.onError(() => unmake(repository, engine_snapshot_id)))
}, Effect.scoped)

const restore = Effect.fnUntraced(function* (
  order: typeof RestoreOrder.Type,
  road: Road,
  options: WalkOptions,
) {
  const engine = yield* Engine
  const share = yield* order.mode === "in_place" ? availableShare(order) : shareOrLost(order)
  yield* road.enter("provisioning_source")
  const { path, new_share_id } = yield* placeFor(order, share)
  const repository = yield* connect(order, road)
  yield* road.enter("transferring")
  const { engine_snapshot_id, sub_path } = order
  const folder = { engine_snapshot_id, path, sub_path }
  const restored = yield* limited(options, engine.restore(repository, folder, road.onProgress))
  yield* road.enter("finalizing")
  yield* road.enter("releasing")
  return { job_type: "restore", made: { ...restored, new_share_id } } as const
})

/** Makes the repository, or finds what an earlier attempt had made: by its password's name. */
const enroll = Effect.fnUntraced(function* (
  order: typeof EnrollmentOrder.Type,
  road: Road,
  options: WalkOptions,
) {
  const buckets = yield* Buckets
  const engine = yield* Engine
  yield* road.enter("provisioning_source")
  yield* road.enter("connecting_repository")
  if (options.require_fips_profile && !engine.is_fips) {
    const detail = "The engine's repositories have no FIPS profile (engine.require_fips_profile)."
    return yield* new EngineFailed({ detail, wrote_nothing: true })
  }
  const { delegation, bucket } = yield* keysOf(order, road)
  const capabilities = yield* buckets.preflight(bucket, { shape: options.shape })
  const { href, password } = yield* repositoryPassword(order, delegation, options)
  road.hide(password)
  const { format, profile } = yield* limited(options, engine.init({ ...bucket, password }))
  yield* road.enter("transferring")
  yield* road.enter("finalizing")
  yield* measure(bucket, road)
  yield* road.enter("releasing")
  const { endpoint, bucket: name, addressing_mode } = order.target
  const place = { endpoint, bucket: name, addressing_mode }
  const made = { repository_password_ref: href, capabilities, format, engine_profile: profile }
  return { job_type: "target_enroll", made: { ...made, place } } as const
})

/** What the service does in a repository of itself. It holds the repository's lease alone. */
const inRepository = Effect.fnUntraced(function* (
  order: Exclude<JobOrder, { readonly job_type: "backup" | "restore" | "target_enroll" }>,
  road: Road,
  options: WalkOptions,
  work: (engine: Engine["Service"], repository: Repository) => Effect.Effect<Result, EngineFailure>,
) {
  const engine = yield* Engine
  yield* road.enter("provisioning_source")
  const repository = yield* connect(order, road)
  yield* road.enter("transferring")
  const worked = work(engine, repository)
  // Nobody else holds the lease, so an engine's lock is one that a dead worker left.
  const unlocked = Effect.catch(worked, (failure) =>
    failure instanceof RepositoryLocked
      ? Effect.andThen(engine.unlock(repository), worked)
      : Effect.fail(failure),
  )
  const result = yield* limited(options, unlocked)
  yield* road.enter("finalizing")
  if (order.job_type === "maintenance" && order.lock_until !== null) {
    yield* (yield* Buckets).extendLocks(repository, order.lock_until)
  }
  yield* measure(repository, road)
  yield* road.enter("releasing")
  return result
})

/** The share, which must be there to be read or written. */
const availableShare = Effect.fnUntraced(function* ({
  project_id,
  share_id,
}: typeof BackupOrder.Type | typeof RestoreOrder.Type) {
  const share = yield* (yield* Shares).find(project_id, share_id)
  if (share === undefined) return yield* new NotFound({ detail: "No such share." })
  if (share.status === "available") return share
  return yield* new NetworkStrategyPrecondition({ detail: `The share is ${share.status}.` })
})

/** The share that was backed up; when it is lost, what is known of it: its size is not. */
const shareOrLost = Effect.fnUntraced(function* (order: typeof RestoreOrder.Type) {
  const { project_id, share_id } = order
  const lost: Share = {
    ...{ id: share_id, project_id, name: share_id, size_bytes: 0, status: "deleted" },
    ...{ snapshot_support: false, mount_snapshot_support: false },
    create_share_from_snapshot_support: false,
  }
  return (yield* (yield* Shares).find(project_id, share_id)) ?? lost
})

const placeFor = Effect.fnUntraced(function* (order: typeof RestoreOrder.Type, like: Share) {
  const shares = yield* Shares
  const { job_id, project_id, resource_id, mode } = order
  if (mode === "in_place") return { path: yield* shares.pathOf(like), new_share_id: null }
  const name = `restore-${resource_id}`
  const { share, path } = yield* shares.create(project_id, { job_id, like, name })
  return { path, new_share_id: share.id }
})

/** Opens the repository: by the tenant's trust, with what the vault has of it. */
const connect = Effect.fnUntraced(function* (
  order: Exclude<JobOrder, typeof EnrollmentOrder.Type>,
  road: Road,
) {
  yield* road.enter("connecting_repository")
  const { delegation, bucket } = yield* keysOf(order, road)
  const password = yield* (yield* Vault).read(delegation, order.repository_password_ref)
  road.hide(password)
  yield* (yield* Buckets).reach(bucket)
  const repository: Repository = { ...bucket, password }
  road.opened(repository)
  return repository
})

const keysOf = Effect.fnUntraced(function* ({ target }: JobOrder, { hide }: Road) {
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref, vault_secret_map } = target
  const vault = yield* Vault
  const delegation = yield* (yield* Trusts).redeem(target.trust_id)
  hide(delegation.token)
  const access_key = yield* vault.read(delegation, vault_secret_map.access_key)
  const secret_key = yield* vault.read(delegation, vault_secret_map.secret_key)
  hide(access_key)
  hide(secret_key)
  const ca_cert = ca_cert_ref === null ? null : yield* vault.read(delegation, ca_cert_ref)
  const opened: Bucket = {
    ...{ endpoint, bucket, region, addressing_mode, access_key, secret_key },
    ca_cert: ca_cert && Redacted.value(ca_cert),
  }
  return { delegation, bucket: opened }
})

/** Durable before the repository is made, so that no repository is without its password. */
const repositoryPassword = Effect.fnUntraced(function* (
  { target_id }: JobOrder,
  delegation: Delegation,
  { new_password }: WalkOptions,
) {
  const vault = yield* Vault
  const name = `almanac-repository-${target_id}`
  const known = yield* vault.find(delegation, name)
  if (known !== undefined) {
    return { href: known, password: yield* vault.read(delegation, known) }
  }
  const password = yield* new_password
  return { href: yield* vault.store(delegation, { name, payload: password }), password }
})

/** The backup is there: that nobody can tell now how long it is locked takes nothing from it. */
const protectedUntil = Effect.fnUntraced(function* (bucket: Bucket) {
  return yield* Effect.orElseSucceed((yield* Buckets).protectedUntil(bucket), () => null)
})

/** What cannot be measured now is measured after the next job. */
const measure = Effect.fnUntraced(function* (bucket: Bucket, { measured }: Road) {
  const usage = yield* Effect.orElseSucceed((yield* Buckets).usage(bucket), () => undefined)
  if (usage !== undefined) yield* measured(usage)
})

/** Forgets the snapshot of a backup that ended meanwhile. What stays is the reconciler's. */
export const unmake = Effect.fnUntraced(function* (
  repository: Repository,
  engine_snapshot_id: string,
) {
  const forgotten = (yield* Engine).forget(repository, [engine_snapshot_id])
  yield* Effect.ignore(Effect.timeout(forgotten, cleanup_timeout))
})

const letGo = Effect.fnUntraced(function* (job_id: string) {
  const { release } = yield* Shares
  yield* release({ token: job_id }).pipe(
    Effect.retry({ times: release_tries_max - 1 }),
    Effect.timeout(cleanup_timeout),
    Effect.catch((failure) => {
      const why = failure instanceof BackendUnavailable ? failure.detail : "No answer came."
      return Effect.logWarning(`What was made to read the share is left to the sweep: ${why}`)
    }),
  )
})

/** One call of the engine, which is stopped when its time is over. */
const limited = <A>(
  { subprocess_timeout_seconds }: WalkOptions,
  call: Effect.Effect<A, EngineFailure>,
) =>
  Effect.timeoutOrElse(call, {
    duration: Duration.seconds(subprocess_timeout_seconds),
    orElse: () => {
      const detail = `The engine did not end within ${subprocess_timeout_seconds} s.`
      return Effect.fail(new EngineFailed({ detail, wrote_nothing: false }))
    },
  })
