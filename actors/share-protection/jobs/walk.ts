/**
 * A job's walk: what a worker does outside, step by step, for each type of job.
 *
 * Each step may be killed anywhere, and be walked again by another attempt: what is made for a job
 * is found again by the job's id, and what an attempt left behind hinders no later one.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, engine, workers, preflight.
 */
import { Duration, Effect, type FileSystem, type Redacted } from "effect"
import type { Result } from "#actors/share-protection/jobs/course.ts"
import {
  connect,
  type Dropped,
  openBucket,
  withTimeout,
  measureUsage,
  protectedUntil,
  type StepContext,
  redeemTrust,
  type StepFailure,
  type StepOptions,
  wasDropped,
} from "#actors/share-protection/jobs/road.ts"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import {
  Engine,
  EngineFailed,
  type FolderRestore,
  planned_actions_max,
  type Repository,
  type RestorePlan,
} from "#actors/share-protection/ports/engine.ts"
import { type Share, Shares } from "#actors/share-protection/ports/shares.ts"
import { type Delegation, Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { repositoryWork } from "#actors/share-protection/processes/repository-work.ts"
import { tagsOf } from "#actors/share-protection/snapshot-tag.ts"
import type {
  BackupOrder,
  EnrollmentOrder,
  JobOrder,
  RestoreOrder,
} from "#schemas/share-protection/job-order.ts"
import {
  BackendUnavailable,
  Conflict,
  NetworkStrategyPrecondition,
  NotFound,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import { planned_bytes_max } from "#schemas/share-protection/restore.ts"

/** A job holds its slot and its lease no longer than this for each thing that it takes back. */
const cleanup_timeout = Duration.minutes(1)

/** Tries to let go of what was made for a job, before it is left to the orphan sweep. */
const release_tries_max = 3

type Ports = Buckets | Engine | FileSystem.FileSystem | Shares | Trusts | Vault
type Walk = Effect.Effect<Result, Dropped | StepFailure, Ports>

/** Walks a job that has begun, from its first step to the end of its last. */
export const runSteps = (order: JobOrder, road: StepContext, options: StepOptions): Walk => {
  switch (order.job_type) {
    case "backup":
      return backUp(order, road, options)
    case "restore":
      return restore(order, road, options)
    case "target_enroll":
      return enroll(order, road, options)
    case "retention":
    case "maintenance":
    case "repo_format_upgrade":
    case "undelete":
    case "restore_test":
      return repositoryWork(order, road, options)
  }
}

const backUp = Effect.fnUntraced(function* (
  order: typeof BackupOrder.Type,
  road: StepContext,
  options: StepOptions,
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
  const made = yield* withTimeout(options, engine.backup(repository, folder, road.onProgress))
  const { engine_snapshot_id } = made
  return yield* Effect.gen(function* () {
    yield* road.enter("finalizing")
    const protected_until = yield* protectedUntil(repository)
    yield* measureUsage(repository, road)
    yield* road.enter("releasing")
    return { job_type: "backup", made: { ...made, crash_consistent, protected_until } } as const
  }).pipe(
    // The repository may be another's by now: what is left there then is the reconciler's.
    Effect.onError((cause) =>
      wasDropped(cause) || !road.mayClean() ? Effect.void : discardSnapshot(repository, engine_snapshot_id),
    ),
  )
}, Effect.scoped)

const restore = Effect.fnUntraced(function* (
  order: typeof RestoreOrder.Type,
  road: StepContext,
  options: StepOptions,
) {
  const engine = yield* Engine
  const share = yield* order.mode === "in_place" ? availableShare(order) : shareOrLost(order)
  yield* road.enter("provisioning_source")
  const repository = yield* connect(order, road)
  // Only now: keys that are refused and a bucket that is away leave no new share behind.
  const { path, new_share_id, finish } = yield* placeFor(order, share, road)
  yield* road.enter("transferring")
  const { engine_snapshot_id, sub_path, dry_run, plan_hash, unread = [] } = order
  const is_exact = order.mode === "in_place"
  const folder = { engine_snapshot_id, path, sub_path, is_exact, unread }
  const plan = dry_run || plan_hash !== null ? yield* planned(repository, folder, options) : null
  if (plan_hash !== null && plan?.hash !== plan_hash) {
    return yield* new Conflict({ detail: "The share changed since the plan." })
  }
  const restored = dry_run
    ? { files: 0, bytes: 0 }
    : yield* withTimeout(options, engine.restore(repository, folder, road.onProgress))
  yield* road.enter("finalizing")
  yield* finish
  yield* road.enter("releasing")
  const left_alone = unread.filter((one) => isBeside(one, sub_path ?? "/"))
  const made = { ...restored, new_share_id, left_alone, plan: dry_run ? plan : null }
  return { job_type: "restore", made } as const
})

/** Whether one of two paths is at the other, or above it. */
const isBeside = (one: string, other: string) => {
  const [a, b] = [one, other].map((path) => `${path.replace(/\/+$/, "")}/`)
  return a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a))
}

const planned = Effect.fnUntraced(function* (
  repository: Repository,
  folder: FolderRestore,
  options: StepOptions,
) {
  const plan = yield* withTimeout(options, (yield* Engine).plan(repository, folder))
  return { ...plan, actions: firstOf(plan.actions) }
})

/** As many of the actions as fit an event. */
const firstOf = (actions: RestorePlan["actions"]) => {
  let bytes = 0
  const room = actions.slice(0, planned_actions_max).findIndex((action) => {
    bytes += new TextEncoder().encode(JSON.stringify(action)).length
    return bytes > planned_bytes_max
  })
  return actions.slice(0, room === -1 ? planned_actions_max : room)
}

/** Makes the repository, or finds what an earlier attempt had made: by its password's name. */
const enroll = Effect.fnUntraced(function* (
  order: typeof EnrollmentOrder.Type,
  road: StepContext,
  options: StepOptions,
) {
  const buckets = yield* Buckets
  const engine = yield* Engine
  yield* road.enter("provisioning_source")
  yield* road.enter("connecting_repository")
  if (options.require_fips_profile && !engine.is_fips) {
    const detail = "The engine's repositories have no FIPS profile (engine.require_fips_profile)."
    return yield* new EngineFailed({ detail, wrote_nothing: true })
  }
  const { delegation, bucket } = yield* openBucket(order, road)
  const capabilities = yield* buckets.preflight(bucket, { shape: options.shape })
  // Only now: who has no keys to a bucket is not told whether somebody uses it.
  if (order.is_taken === true) return yield* taken
  const opening: Opening = { order, road, options, delegation, bucket }
  const { href, format, profile } = (yield* formerRepository(opening)) ?? (yield* own(opening))
  yield* road.enter("transferring")
  yield* road.enter("finalizing")
  yield* measureUsage(bucket, road)
  yield* road.enter("releasing")
  const { endpoint, bucket: name, addressing_mode } = order.target
  const place = { endpoint, bucket: name, addressing_mode }
  const made = { repository_password_ref: href, capabilities, format, engine_profile: profile }
  return { job_type: "target_enroll", made: { ...made, place } } as const
})

const taken = new Conflict({
  detail: "The bucket is another target's already: each target needs a bucket of its own.",
})

interface Opening {
  readonly order: typeof EnrollmentOrder.Type
  readonly road: StepContext
  readonly options: StepOptions
  readonly delegation: Delegation
  readonly bucket: Bucket
}

/** Opens the repository by this password, or makes it where there is none. */
const openedBy = Effect.fnUntraced(function* (
  { road, options, bucket }: Opening,
  href: string,
  password: Redacted.Redacted<string>,
) {
  road.redact(password)
  const made = yield* withTimeout(options, (yield* Engine).init({ ...bucket, password }))
  return { ...made, href }
})

const own = Effect.fnUntraced(function* (opening: Opening) {
  const { order, delegation, options } = opening
  const { href, password } = yield* repositoryPassword(order, delegation, options)
  return yield* openedBy(opening, href, password)
})

/**
 * What a deleted target of the project left in the bucket; undefined where none of their passwords
 * can be had, or opens it. In a bucket that was emptied since, the repository is made anew by it.
 */
const formerRepository = Effect.fnUntraced(function* (opening: Opening) {
  const vault = yield* Vault
  for (const href of opening.order.former_password_refs ?? []) {
    const opened = vault
      .read(opening.delegation, href)
      .pipe(Effect.flatMap((password) => openedBy(opening, href, password)))
    const found = yield* Effect.catchIf(
      opened,
      (failure) => failure instanceof TrustAccessDenied,
      () => Effect.succeed(undefined),
    )
    if (found !== undefined) return found
  }
  return undefined
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
    id: share_id,
    project_id,
    name: share_id,
    size_bytes: 0,
    status: "deleted",
    snapshot_support: false,
    mount_snapshot_support: false,
    create_share_from_snapshot_support: false,
  }
  return (yield* (yield* Shares).find(project_id, share_id)) ?? lost
})

const placeFor = Effect.fnUntraced(function* (
  order: typeof RestoreOrder.Type,
  like: Share,
  road: StepContext,
) {
  const shares = yield* Shares
  const { job_id, project_id, resource_id, mode } = order
  if (mode === "in_place") {
    return { path: yield* shares.pathOf(like), new_share_id: null, finish: Effect.void }
  }
  const name = `restore-${resource_id}`
  const by = Effect.provideService(redeemTrust(order, road), Trusts, yield* Trusts)
  const { share, path } = yield* shares.create(project_id, { job_id, like, name, by })
  road.recordLeftover(`The new share ${share.id} is unfinished; a retry of the job goes on with it.`)
  return { path, new_share_id: share.id, finish: shares.finish(share, { job_id, name, by }) }
})

/** Durable before the repository is made, so that no repository is without its password. */
const repositoryPassword = Effect.fnUntraced(function* (
  { target_id }: JobOrder,
  delegation: Delegation,
  { new_password }: StepOptions,
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

/** Forgets the snapshot of a backup that ended meanwhile. What stays is the reconciler's. */
export const discardSnapshot = Effect.fnUntraced(function* (
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
