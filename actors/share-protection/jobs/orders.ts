/**
 * The order for a job, as the log has it at this moment: a policy's patterns and a target's hrefs
 * may have changed since the job was queued.
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
} from "#actors/share-protection/jobs/course.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { Restore, restoreAfter } from "#actors/share-protection/restore.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import type { Log, LogUnavailable, Recorded } from "#events/log.ts"
import type { Forgotten } from "#schemas/share-protection/backup.ts"
import { BackupId, type JobId, RestoreId, TargetId } from "#schemas/share-protection/id.ts"
import type { EnrollmentOrder, JobOrder } from "#schemas/share-protection/job-order.ts"

type LogService = Log["Service"]

/** What the aggregate is after its last commit; a job's own are always there. */
const now = <A>(
  log: LogService,
  { name }: { readonly name: string },
  id: string,
  after: (log: LogService, recorded: Recorded) => Effect.Effect<A, LogUnavailable>,
) =>
  Effect.flatMap(log.load(`${name}.${id}`), (recorded) =>
    recorded === undefined
      ? Effect.die(new Error(`There is no ${name}.${id}.`))
      : after(log, recorded),
  )

const asUnavailable = <A>(asked: Effect.Effect<A, LogUnavailable>) =>
  Effect.mapError(asked, ({ detail }) => new Unavailable({ detail }))

/** Whether the job is in this hold now, and has not ended. */
export const isHeld = (log: LogService, job_id: JobId, hold: Hold) =>
  asUnavailable(
    Effect.map(now(log, Job, job_id, jobAfter), ({ state, worker_id, fence }) => {
      const has_ended = state === "available" || state === "error"
      return !has_ended && worker_id === hold.worker_id && fence === hold.fence
    }),
  )

/** What a job of one backup needs it to be; any backup will do for the others. */
const needed_state: Partial<Record<JobFacts["job_type"], string>> = {
  restore: "available",
  restore_test: "available",
}

/** Gives a job to a worker; one whose snapshot is gone meanwhile ends instead. */
export const assignment = (
  log: LogService,
  facts: JobFacts,
  hold: Hold,
): Batch | Effect.Effect<Batch, Unavailable> => {
  const { job_type, backup_id } = facts
  const needed = needed_state[job_type]
  if (needed === undefined || backup_id === null) return assignJob(facts, hold)
  return asUnavailable(
    Effect.map(now(log, Backup, backup_id, backupAfter), ({ state }) =>
      state === needed ? assignJob(facts, hold) : rejectJob(facts, snapshot_gone),
    ),
  )
}

const snapshot_gone: JobFailure = {
  code: "svc.not_found",
  detail: "The backup's snapshot is not in the repository any more.",
  category: "tenant_action_required",
  wrote_nothing: true,
}

/** What an enrollment is told of other targets of its bucket. */
type OfBucket = Pick<typeof EnrollmentOrder.Type, "former_password_refs" | "is_taken">

/** Answers undefined when the job has ended, or its target lacks what a worker needs. */
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
  const target = yield* now(log, Target, target_id, targetAfter)
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref } = target
  const { trust_id, vault_secret_map, repository_password_ref } = target
  const { attempt, project_id, forget } = yield* now(log, Job, job_id, jobAfter)
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
      const gone = yield* Effect.filter(forget, (one) =>
        Effect.map(isNeeded(log, one), (is) => !is),
      )
      return { job_type, ...of_target, repository_password_ref, forget: gone }
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
  const backup = yield* now(log, Backup, id, backupAfter)
  const { share_id, project_id, policy_id, crash_consistent_wanted } = backup
  const { policy } = yield* now(log, Policy, share_id, policyAfter)
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
  const restore = yield* now(log, Restore, id, restoreAfter)
  const { backup_id, share_id, project_id, mode, sub_path, dry_run, plan_hash } = restore
  const { engine_snapshot_id } = yield* now(log, Backup, backup_id, backupAfter)
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

/** Whether a snapshot is one that its backup has, or is to have, again: it was undeleted since. */
const isNeeded = (log: LogService, { backup_id, engine_snapshot_id }: Forgotten) =>
  Effect.map(
    now(log, Backup, backup_id, backupAfter),
    (backup) =>
      (backup.state === "available" || backup.state === "undeleting") &&
      backup.engine_snapshot_id === engine_snapshot_id,
  )

/** What a job of one backup is told of it. */
const ofBackup = Effect.fnUntraced(function* (log: LogService, about: About, id: string) {
  const backup_id = BackupId.make(id)
  const backup = yield* now(log, Backup, id, backupAfter)
  const { engine_snapshot_id, project_id, share_id } = backup
  if (engine_snapshot_id === null) return undefined
  return { ...about, resource_id: backup_id, backup_id, project_id, share_id, engine_snapshot_id }
})
