/**
 * Job steps: the work of a worker in other systems, step by step, for each job type.
 *
 * A process may be killed at any point, and another attempt then runs every step again. Resources
 * made for a job are found by the job's id, and leftovers of one attempt do not block the next.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, engine, workers, preflight.
 */
import { Duration, Effect, type FileSystem, type Redacted } from "effect"
import {
  connect,
  type Dropped,
  measureUsage,
  openBucket,
  protectedUntil,
  redeemTrust,
  type StepContext,
  type StepFailure,
  type StepOptions,
  wasDropped,
  withTimeout,
} from "#actors/share-protection/jobs/step-context.ts"
import type { JobResult } from "#actors/share-protection/jobs/transitions.ts"
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

/** Time limit for each cleanup, because the job holds its slot and its lease meanwhile. */
const cleanup_timeout = Duration.minutes(1)

/** Attempts to release the source of a job before it is left to the orphan sweep. */
const release_tries_max = 3

type Ports = Buckets | Engine | FileSystem.FileSystem | Shares | Trusts | Vault
type Steps = Effect.Effect<JobResult, Dropped | StepFailure, Ports>

/** Runs all steps of a job that has started. */
export const runSteps = (order: JobOrder, context: StepContext, options: StepOptions): Steps => {
  switch (order.job_type) {
    case "backup":
      return backUp(order, context, options)
    case "restore":
      return restore(order, context, options)
    case "target_enroll":
      return enroll(order, context, options)
    case "retention":
    case "maintenance":
    case "repo_format_upgrade":
    case "undelete":
    case "restore_test":
      return repositoryWork(order, context, options)
  }
}

const backUp = Effect.fnUntraced(function* (
  order: typeof BackupOrder.Type,
  context: StepContext,
  options: StepOptions,
) {
  const { job_id, backup_id, project_id, share_id, policy_id } = order
  const { include_patterns, exclude_patterns } = order
  const shares = yield* Shares
  const engine = yield* Engine
  const share = yield* availableShare(order)
  yield* context.enter("provisioning_source")
  // Registered first: an interruption may leave a half-made source.
  yield* Effect.addFinalizer(() => releaseSource(job_id))
  const { path, crash_consistent } = yield* shares.prepare(share, {
    job_id,
    crash_consistent: order.crash_consistent_wanted,
  })
  const repository = yield* connect(order, context)
  yield* context.enter("transferring")
  const tags = tagsOf({ backup_id, project_id, share_id, policy_id, crash_consistent })
  const folder = { path, host: share_id, tags, include_patterns, exclude_patterns }
  const made = yield* withTimeout(options, engine.backup(repository, folder, context.onProgress))
  const { engine_snapshot_id } = made
  return yield* Effect.gen(function* () {
    yield* context.enter("finalizing")
    const protected_until = yield* protectedUntil(repository)
    yield* measureUsage(repository, context)
    yield* context.enter("releasing")
    return { job_type: "backup", made: { ...made, crash_consistent, protected_until } } as const
  }).pipe(
    // Another worker may own the repository now; the reconciler then removes the snapshot.
    Effect.onError((cause) =>
      wasDropped(cause) || !context.mayClean()
        ? Effect.void
        : discardSnapshot(repository, engine_snapshot_id),
    ),
  )
}, Effect.scoped)

const restore = Effect.fnUntraced(function* (
  order: typeof RestoreOrder.Type,
  context: StepContext,
  options: StepOptions,
) {
  const engine = yield* Engine
  const share = yield* order.mode === "in_place" ? availableShare(order) : shareOrLost(order)
  yield* context.enter("provisioning_source")
  const repository = yield* connect(order, context)
  // Only now, so that rejected keys or an offline bucket leave no new share behind.
  const { path, new_share_id, finish } = yield* restoreDestination(order, share, context)
  yield* context.enter("transferring")
  const { engine_snapshot_id, sub_path, dry_run, plan_hash, unread = [] } = order
  const is_exact = order.mode === "in_place"
  const folder = { engine_snapshot_id, path, sub_path, is_exact, unread }
  const plan = dry_run || plan_hash !== null ? yield* planned(repository, folder, options) : null
  if (plan_hash !== null && plan?.hash !== plan_hash) {
    return yield* new Conflict({ detail: "The share has changed since the dry run." })
  }
  const restored = dry_run
    ? { files: 0, bytes: 0 }
    : yield* withTimeout(options, engine.restore(repository, folder, context.onProgress))
  yield* context.enter("finalizing")
  yield* finish
  yield* context.enter("releasing")
  const left_alone = unread.filter((one) => overlaps(one, sub_path ?? "/"))
  const made = { ...restored, new_share_id, left_alone, plan: dry_run ? plan : null }
  return { job_type: "restore", made } as const
})

/** Whether two paths are equal, or one contains the other. */
const overlaps = (one: string, other: string) => {
  const [a, b] = [one, other].map((path) => `${path.replace(/\/+$/, "")}/`)
  return a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a))
}

const planned = Effect.fnUntraced(function* (
  repository: Repository,
  folder: FolderRestore,
  options: StepOptions,
) {
  const plan = yield* withTimeout(options, (yield* Engine).plan(repository, folder))
  return { ...plan, actions: truncateActions(plan.actions) }
})

/** The first actions, up to the size limit of an event. */
const truncateActions = (actions: RestorePlan["actions"]) => {
  let bytes = 0
  const room = actions.slice(0, planned_actions_max).findIndex((action) => {
    bytes += new TextEncoder().encode(JSON.stringify(action)).length
    return bytes > planned_bytes_max
  })
  return actions.slice(0, room === -1 ? planned_actions_max : room)
}

/** Creates the repository, or finds that of an earlier attempt by the name of its password. */
const enroll = Effect.fnUntraced(function* (
  order: typeof EnrollmentOrder.Type,
  context: StepContext,
  options: StepOptions,
) {
  const buckets = yield* Buckets
  const engine = yield* Engine
  yield* context.enter("provisioning_source")
  yield* context.enter("connecting_repository")
  if (options.require_fips_profile && !engine.is_fips) {
    const detail = "The engine has no FIPS profile, which engine.require_fips_profile requires."
    return yield* new EngineFailed({ detail, wrote_nothing: true })
  }
  const { delegation, bucket } = yield* openBucket(order, context)
  const capabilities = yield* buckets.preflight(bucket, { shape: options.shape })
  // Only now: a caller without keys to the bucket must not learn whether it is in use.
  if (order.is_taken === true) return yield* bucket_taken
  const opening: EnrollmentContext = { order, context, options, delegation, bucket }
  const { href, format, profile } =
    (yield* formerRepository(opening)) ?? (yield* openOwnRepository(opening))
  yield* context.enter("transferring")
  yield* context.enter("finalizing")
  yield* measureUsage(bucket, context)
  yield* context.enter("releasing")
  const { endpoint, bucket: name, addressing_mode } = order.target
  const place = { endpoint, bucket: name, addressing_mode }
  const made = { repository_password_ref: href, capabilities, format, engine_profile: profile }
  return { job_type: "target_enroll", made: { ...made, place } } as const
})

const bucket_taken = new Conflict({
  detail: "The bucket already belongs to another target: each target needs its own bucket.",
})

interface EnrollmentContext {
  readonly order: typeof EnrollmentOrder.Type
  readonly context: StepContext
  readonly options: StepOptions
  readonly delegation: Delegation
  readonly bucket: Bucket
}

/** Opens the repository with this password, or creates it if there is none. */
const openWith = Effect.fnUntraced(function* (
  { context, options, bucket }: EnrollmentContext,
  href: string,
  password: Redacted.Redacted<string>,
) {
  context.redact(password)
  const made = yield* withTimeout(options, (yield* Engine).init({ ...bucket, password }))
  return { ...made, href }
})

const openOwnRepository = Effect.fnUntraced(function* (opening: EnrollmentContext) {
  const { order, delegation, options } = opening
  const { href, password } = yield* repositoryPassword(order, delegation, options)
  return yield* openWith(opening, href, password)
})

/**
 * Opens the repository that a deleted target of the project left in the bucket. Returns undefined
 * if none of the former passwords is readable or opens it. If the bucket was emptied since, creates
 * a new repository with the former password.
 */
const formerRepository = Effect.fnUntraced(function* (opening: EnrollmentContext) {
  const vault = yield* Vault
  for (const href of opening.order.former_password_refs ?? []) {
    const opened = vault
      .read(opening.delegation, href)
      .pipe(Effect.flatMap((password) => openWith(opening, href, password)))
    const found = yield* Effect.catchIf(
      opened,
      (failure) => failure instanceof TrustAccessDenied,
      () => Effect.succeed(undefined),
    )
    if (found !== undefined) return found
  }
  return undefined
})

/** The share, which must be available to be read or written. */
const availableShare = Effect.fnUntraced(function* ({
  project_id,
  share_id,
}: typeof BackupOrder.Type | typeof RestoreOrder.Type) {
  const share = yield* (yield* Shares).find(project_id, share_id)
  if (share === undefined) return yield* new NotFound({ detail: "No such share." })
  if (share.status === "available") return share
  return yield* new NetworkStrategyPrecondition({ detail: `The share is ${share.status}.` })
})

/** The share that was backed up, or a placeholder without a size if it no longer exists. */
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

const restoreDestination = Effect.fnUntraced(function* (
  order: typeof RestoreOrder.Type,
  like: Share,
  context: StepContext,
) {
  const shares = yield* Shares
  const { job_id, project_id, resource_id, mode } = order
  if (mode === "in_place") {
    return { path: yield* shares.pathOf(like), new_share_id: null, finish: Effect.void }
  }
  const name = `restore-${resource_id}`
  const by = Effect.provideService(redeemTrust(order, context), Trusts, yield* Trusts)
  const { share, path } = yield* shares.create(project_id, { job_id, like, name, by })
  context.recordLeftover(
    `The new share ${share.id} is incomplete; retrying the job continues with it.`,
  )
  return { path, new_share_id: share.id, finish: shares.finish(share, { job_id, name, by }) }
})

/** Stores the password before the repository is created, so every repository has a password. */
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

/** Forgets the snapshot of a backup that has ended. The reconciler removes what remains. */
export const discardSnapshot = Effect.fnUntraced(function* (
  repository: Repository,
  engine_snapshot_id: string,
) {
  const forgotten = (yield* Engine).forget(repository, [engine_snapshot_id])
  yield* Effect.ignore(Effect.timeout(forgotten, cleanup_timeout))
})

const releaseSource = Effect.fnUntraced(function* (job_id: string) {
  const { release } = yield* Shares
  yield* release({ token: job_id }).pipe(
    Effect.retry({ times: release_tries_max - 1 }),
    Effect.timeout(cleanup_timeout),
    Effect.catch((failure) => {
      const reason = failure instanceof BackendUnavailable ? failure.detail : "No response arrived."
      return Effect.logWarning(
        `The job's snapshot or access could not be removed; the next sweep removes it: ${reason}`,
      )
    }),
  )
})
