/**
 * Repository work: the steps of jobs on the repository itself, that is retention, maintenance,
 * format upgrade, undelete and restore test.
 *
 * Source: document 2 §3 Backup, §8 conductor.maintenance_interval_seconds; beyond the document:
 * docs/decisions/0066-restore-plans-and-undelete.md.
 */
import { DateTime, Effect, FileSystem } from "effect"
import {
  connect,
  measureUsage,
  protectedUntil,
  type StepContext,
  type StepFailure,
  type StepOptions,
  withTimeout,
} from "#actors/share-protection/jobs/step-context.ts"
import type { JobResult } from "#actors/share-protection/jobs/transitions.ts"
import { Buckets } from "#actors/share-protection/ports/buckets.ts"
import { Engine, type Repository } from "#actors/share-protection/ports/engine.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { Conflict, RepositoryLocked } from "#schemas/share-protection/rejection.ts"

/** Sample size of a restore test: enough to detect damage, and quick to restore. */
const sample_files_max = 20
const sample_bytes_max = 64 * 1024 * 1024

type Order = Exclude<JobOrder, { readonly job_type: "backup" | "restore" | "target_enroll" }>
type Ordered<Type extends Order["job_type"]> = Extract<Order, { readonly job_type: Type }>
type Work = Effect.Effect<JobResult, StepFailure, Buckets | Engine | FileSystem.FileSystem>

/**
 * Runs the steps of a started job. The job holds the lease exclusively, except for a restore test,
 * which shares it.
 */
export const repositoryWork = Effect.fnUntraced(function* (
  order: Order,
  context: StepContext,
  options: StepOptions,
) {
  yield* context.enter("provisioning_source")
  const repository = yield* connect(order, context)
  yield* context.enter("transferring")
  const work = workOf(order, repository, options)
  const result = yield* order.job_type === "restore_test" ? work : exclusive(repository, work)
  yield* context.enter("finalizing")
  yield* measureUsage(repository, context)
  yield* context.enter("releasing")
  return result
})

/** The lease is exclusive, so any lock of the engine is a leftover of a dead worker. */
const exclusive = Effect.fnUntraced(function* (repository: Repository, work: Work) {
  const { unlock } = yield* Engine
  return yield* Effect.catch(work, (failure) =>
    failure instanceof RepositoryLocked
      ? Effect.andThen(unlock(repository), work)
      : Effect.fail(failure),
  )
})

const workOf = (order: Order, repository: Repository, options: StepOptions): Work => {
  switch (order.job_type) {
    case "retention":
      return forget(order, repository, options)
    case "maintenance":
      return maintain(repository, options)
    case "repo_format_upgrade":
      return upgrade(repository, options)
    case "undelete":
      return undelete(order, repository, options)
    case "restore_test":
      return prove(order, repository, options)
  }
}

const forget = Effect.fnUntraced(function* (
  { forget }: Ordered<"retention">,
  repository: Repository,
  options: StepOptions,
) {
  const ids = forget.map(({ engine_snapshot_id }) => engine_snapshot_id)
  yield* withTimeout(options, (yield* Engine).forget(repository, ids))
  return { job_type: "retention" } as const
})

/** Extends the locks of all needed objects by the bucket's default retention. */
const maintain = Effect.fnUntraced(function* (repository: Repository, options: StepOptions) {
  const buckets = yield* Buckets
  yield* withTimeout(options, (yield* Engine).maintain(repository))
  const retention_s = yield* buckets.retention(repository)
  if (retention_s !== null) {
    const until = DateTime.add(yield* DateTime.now, { seconds: retention_s })
    yield* buckets.extendLocks(repository, DateTime.formatIso(until))
  }
  const protected_until = retention_s === null ? null : yield* buckets.protectedUntil(repository)
  yield* buckets.purge(repository)
  return { job_type: "maintenance", made: { protected_until } } as const
})

const upgrade = Effect.fnUntraced(function* (repository: Repository, options: StepOptions) {
  const made = yield* withTimeout(options, (yield* Engine).upgrade(repository))
  return { job_type: "repo_format_upgrade", made } as const
})

const undelete = Effect.fnUntraced(function* (
  { engine_snapshot_id }: Ordered<"undelete">,
  repository: Repository,
  options: StepOptions,
) {
  const is_back = yield* (yield* Buckets).undelete(repository, engine_snapshot_id)
  const snapshots = is_back
    ? yield* withTimeout(options, (yield* Engine).snapshots(repository))
    : []
  if (!snapshots.some((snapshot) => snapshot.engine_snapshot_id === engine_snapshot_id)) {
    return yield* new Conflict({ detail: "The backup's snapshot cannot be recovered." })
  }
  const protected_until = yield* protectedUntil(repository)
  return { job_type: "undelete", made: { protected_until } } as const
})

/** Restores a sample to a temporary directory, which is removed afterwards. */
const prove = Effect.fnUntraced(function* (
  { job_id, engine_snapshot_id }: Ordered<"restore_test">,
  repository: Repository,
  options: StepOptions,
) {
  const { scratch_dir: directory } = options
  const files = yield* FileSystem.FileSystem
  // A failure of the local disk is a defect of the worker and proves nothing about the backup.
  const path = yield* files
    .makeDirectory(directory, { recursive: true })
    .pipe(
      Effect.andThen(files.makeTempDirectoryScoped({ directory, prefix: "restore-test-" })),
      Effect.orDie,
    )
  const limits = { files_max: sample_files_max, bytes_max: sample_bytes_max }
  // Each test samples different files.
  const sample = { engine_snapshot_id, path, ...limits, seed: job_id }
  const made = yield* withTimeout(options, (yield* Engine).prove(repository, sample))
  return { job_type: "restore_test", made } as const
}, Effect.scoped)
