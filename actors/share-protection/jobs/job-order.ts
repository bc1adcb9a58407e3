/**
 * Builds the order for a job from the current state of the log: a policy's patterns and a target's
 * hrefs may have changed since the job was queued.
 *
 * Source: DECISIONS, document 2, workers.
 */
import { Effect } from "effect"
import { Unavailable } from "#actors/commands.ts"
import type { Batch } from "#actors/process.ts"
import { Backup, backupAfter, unreadOf } from "#actors/share-protection/backup.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import {
  assignJob,
  type Hold,
  type JobFacts,
  type JobFailure,
  rejectJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { Restore, restoreAfter } from "#actors/share-protection/restore.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import type { Log, LogUnavailable, Recorded } from "#events/log.ts"
import type { Forgotten } from "#schemas/share-protection/backup.ts"
import { BackupId, type JobId, RestoreId, TargetId } from "#schemas/share-protection/id.ts"
import type { EnrollmentOrder, JobOrder } from "#schemas/share-protection/job-order.ts"

type LogService = Log["Service"]

/** The aggregate's state after its last commit. The aggregates of a job always exist. */
const stateOf = <A>(
  log: LogService,
  { name }: { readonly name: string },
  id: string,
  after: (log: LogService, recorded: Recorded) => Effect.Effect<A, LogUnavailable>,
) =>
  Effect.flatMap(log.load(`${name}.${id}`), (recorded) =>
    recorded === undefined
      ? Effect.die(new Error(`${name}.${id} does not exist.`))
      : after(log, recorded),
  )

const asUnavailable = <A>(read: Effect.Effect<A, LogUnavailable>) =>
  Effect.mapError(read, ({ detail }) => new Unavailable({ detail }))

/** Whether the job has not ended and this worker still holds it with this fence. */
export const isHeld = (log: LogService, job_id: JobId, hold: Hold) =>
  asUnavailable(
    Effect.map(stateOf(log, Job, job_id, jobAfter), ({ state, worker_id, fence }) => {
      const has_ended = state === "available" || state === "error"
      return !has_ended && worker_id === hold.worker_id && fence === hold.fence
    }),
  )

/** The backup state that a job type requires; other types accept any state. */
const needed_state: Partial<Record<JobFacts["job_type"], string>> = {
  restore: "available",
  restore_test: "available",
}

/** Assigns a job to a worker, or rejects the job if its snapshot is gone. */
export const assignment = (
  log: LogService,
  facts: JobFacts,
  hold: Hold,
): Batch | Effect.Effect<Batch, Unavailable> => {
  const { job_type, backup_id } = facts
  const needed = needed_state[job_type]
  if (needed === undefined || backup_id === null) return assignJob(facts, hold)
  return asUnavailable(
    Effect.map(stateOf(log, Backup, backup_id, backupAfter), ({ state }) =>
      state === needed ? assignJob(facts, hold) : rejectJob(facts, snapshot_gone),
    ),
  )
}

const snapshot_gone: JobFailure = {
  code: "svc.not_found",
  detail: "The backup's snapshot is no longer in the repository.",
  category: "tenant_action_required",
  wrote_nothing: true,
}

/** The facts about other targets of the same bucket, for an enrollment. */
type OfBucket = Pick<typeof EnrollmentOrder.Type, "former_password_refs" | "is_taken">

/** Undefined if the job has ended, or if its target lacks keys or a password. */
export const jobOrder = (
  log: LogService,
  facts: JobFacts,
  hold: Hold,
  of_bucket: OfBucket = {},
): Effect.Effect<JobOrder | undefined, Unavailable> =>
  asUnavailable(order(log, facts, hold, of_bucket))

const order = Effect.fnUntraced(function* (
  log: LogService,
  facts: JobFacts,
  hold: Hold,
  of_bucket: OfBucket,
) {
  const { job_id, job_type, resource_id, target_id } = facts
  const target = yield* stateOf(log, Target, target_id, targetAfter)
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref } = target
  const { trust_id, vault_secret_map, repository_password_ref } = target
  const { attempt, project_id, forget } = yield* stateOf(log, Job, job_id, jobAfter)
  if (trust_id === null || vault_secret_map === null) return undefined
  const bucket_of = { endpoint, bucket, region, addressing_mode, ca_cert_ref }
  const about = {
    job_id,
    attempt,
    ...hold,
    target_id,
    target: { ...bucket_of, trust_id, vault_secret_map },
  }
  const of_target = { ...about, resource_id: TargetId.make(target_id), project_id }
  if (job_type === "target_enroll") return { job_type, ...of_target, ...of_bucket }
  if (repository_password_ref === null) return undefined
  switch (job_type) {
    case "backup":
      return yield* backupOrder(log, { ...about, repository_password_ref }, resource_id)
    case "restore":
      return yield* restoreOrder(log, { ...about, repository_password_ref }, resource_id)
    case "retention": {
      const unneeded = yield* Effect.filter(forget, (one) =>
        Effect.map(isNeeded(log, one), (is) => !is),
      )
      return { job_type, ...of_target, repository_password_ref, forget: unneeded }
    }
    case "maintenance":
      return { job_type, ...of_target, repository_password_ref }
    case "repo_format_upgrade":
      return { job_type, ...of_target, repository_password_ref }
    case "undelete":
    case "restore_test": {
      const of_backup = yield* ofBackup(log, { ...about, repository_password_ref }, resource_id)
      return of_backup && { job_type, ...of_backup }
    }
  }
})

type About = Pick<
  Extract<JobOrder, { job_type: "backup" }>,
  "job_id" | "attempt" | "worker_id" | "fence" | "target_id" | "target" | "repository_password_ref"
>

const backupOrder = Effect.fnUntraced(function* (log: LogService, about: About, id: string) {
  const backup_id = BackupId.make(id)
  const backup = yield* stateOf(log, Backup, id, backupAfter)
  const { share_id, project_id, policy_id, crash_consistent_wanted } = backup
  const { policy } = yield* stateOf(log, Policy, share_id, policyAfter)
  const patterns = policy?.id === policy_id ? policy : null
  return {
    job_type: "backup" as const,
    ...about,
    project_id,
    resource_id: backup_id,
    backup_id,
    share_id,
    policy_id,
    crash_consistent_wanted,
    include_patterns: patterns?.include_patterns ?? [],
    exclude_patterns: patterns?.exclude_patterns ?? [],
  }
})

const restoreOrder = Effect.fnUntraced(function* (log: LogService, about: About, id: string) {
  const restore = yield* stateOf(log, Restore, id, restoreAfter)
  const { backup_id, share_id, project_id, mode, sub_path, dry_run, plan_hash } = restore
  const { engine_snapshot_id } = yield* stateOf(log, Backup, backup_id, backupAfter)
  if (engine_snapshot_id === null) return undefined
  const unread = mode === "in_place" ? yield* unreadOf(log, backup_id) : []
  return {
    job_type: "restore" as const,
    ...about,
    project_id,
    resource_id: RestoreId.make(id),
    backup_id,
    share_id,
    engine_snapshot_id,
    mode,
    sub_path,
    dry_run,
    plan_hash,
    unread,
  }
})

/** Whether the backup of a snapshot needs it again, because it was undeleted. */
const isNeeded = (log: LogService, { backup_id, engine_snapshot_id }: Forgotten) =>
  Effect.map(
    stateOf(log, Backup, backup_id, backupAfter),
    (backup) =>
      (backup.state === "available" || backup.state === "undeleting") &&
      backup.engine_snapshot_id === engine_snapshot_id,
  )

/** The order's fields for a job of one backup. */
const ofBackup = Effect.fnUntraced(function* (log: LogService, about: About, id: string) {
  const backup_id = BackupId.make(id)
  const backup = yield* stateOf(log, Backup, id, backupAfter)
  const { engine_snapshot_id, project_id, share_id } = backup
  if (engine_snapshot_id === null) return undefined
  return { ...about, resource_id: backup_id, backup_id, project_id, share_id, engine_snapshot_id }
})
