/** The conductor's input in tests: any number of targets, backups, restores and jobs. */
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  assignJob,
  completeJob,
  type Hold,
  type JobFacts,
  type JobResult,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  type BackupRequest,
  queueTargetJob,
  requestBackup,
  requestRestore,
} from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { CompleteBackup, StartBackup } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  RestoreId,
  ShareId,
  TargetId,
  type WorkerId,
} from "#schemas/share-protection/id.ts"
import { AdvanceJob, type JobStep, job_steps } from "#schemas/share-protection/job.ts"
import { FinishShareBackup } from "#schemas/share-protection/policy.ts"
import { CompleteEnrollment, CreateTarget } from "#schemas/share-protection/target.ts"
import { ask } from "./conducted.ts"
import { factsOf } from "./deployment.ts"
import {
  enrolled,
  jobId,
  project_id,
  restore,
  restored,
  snapshot,
  target,
  uuid,
} from "./samples.ts"

export const targetId = (number: number) => TargetId.make(uuid(2000 + number))
export const shareId = (number: number) => ShareId.make(uuid(3000 + number))
export const backupId = (number: number) => BackupId.make(uuid(4000 + number))
export const restoreId = (number: number) => RestoreId.make(uuid(5000 + number))

/** A job of the target itself. */
export const ownJobId = (number: number) => JobId.make(uuid(6000 + number))
/** The job of a restore. */
export const restoreJobId = (number: number) => JobId.make(uuid(7000 + number))

const limit = 1000

/** A target that waits for enrollment, without a job in the log. */
export const pendingTarget = (number: number, more: Partial<typeof CreateTarget.Type> = {}) =>
  ask(address(Target, targetId(number), CreateTarget.make({ ...target, ...more })))

/** An enrolled target. */
export const availableTarget = Effect.fnUntraced(function* (
  number: number,
  more: Partial<typeof CreateTarget.Type> = {},
) {
  yield* pendingTarget(number, more)
  const { job_id } = { ...target, ...more }
  yield* ask(address(Target, targetId(number), CompleteEnrollment.make({ job_id, ...enrolled })))
})

/** A request for backup `number` of the share with that number, by the job with that number. */
export const requestOf = (number: number, on: number, more: Partial<BackupRequest> = {}) => ({
  backup_id: backupId(number),
  job_id: jobId(number),
  project_id,
  share_id: shareId(number),
  target_id: targetId(on),
  policy_id: null,
  crash_consistent_wanted: null,
  tick: null,
  max_retries: 0,
  ...more,
})

export const backUp = (number: number, on: number, more: Partial<BackupRequest> = {}) =>
  ask(...requestBackup(requestOf(number, on, more), limit))

/** A completed backup without a worker: its job was never queued. */
export const madeBackup = Effect.fnUntraced(function* (
  number: number,
  on: number,
  more: Partial<BackupRequest & typeof CompleteBackup.Type> = {},
) {
  const { share_id } = requestOf(number, on, more)
  const backup_id = backupId(number)
  const request = requestBackup(requestOf(number, on, more), limit)
  yield* ask(...request.filter(({ to }) => to !== Job))
  yield* ask(address(Backup, backup_id, StartBackup.make({})))
  const engine_snapshot_id = `snapshot-${number}`
  yield* ask(
    address(Backup, backup_id, CompleteBackup.make({ ...snapshot, engine_snapshot_id, ...more })),
    address(Policy, share_id, FinishShareBackup.make({ backup_id })),
  )
})

/** A restore of the backup with that number. */
export const restoreOf = (
  number: number,
  on: number,
  nth = number,
  more: Partial<Parameters<typeof requestRestore>[1]> = {},
) =>
  ask(
    ...requestRestore(restoreId(nth), {
      ...restore,
      backup_id: backupId(number),
      share_id: shareId(number),
      target_id: targetId(on),
      job_id: restoreJobId(nth),
      ...more,
    }),
  )

/** A job with exclusive access to its target's repository. */
export const maintain = (number: number, on: number) =>
  ask(queueTargetJob(ownJobId(number), "maintenance", targetId(on), project_id))

/** Assigns a job to a worker, as the conductor would. */
export const give = Effect.fnUntraced(function* (
  job_id: JobId,
  worker_id: WorkerId,
  fence: number,
) {
  yield* ask(...assignJob(yield* factsOf(job_id), { worker_id, fence }))
})

/** The worker accepts its job and enters the step. */
export const start = Effect.fnUntraced(function* (job_id: JobId, to: JobStep = "transferring") {
  const job = yield* factsOf(job_id)
  yield* ask(...startJob(job, heldBy(job)))
  for (const step of job_steps.slice(1, job_steps.indexOf(to) + 1)) yield* go(job_id, step)
})

/** The worker enters the next step of its job. */
export const go = Effect.fnUntraced(function* (job_id: JobId, to: JobStep) {
  const hold = heldBy(yield* factsOf(job_id))
  yield* ask(address(Job, job_id, AdvanceJob.make({ ...hold, to })))
})

/** The job's hold, which must exist. */
const heldBy = ({ hold, job_id }: JobFacts): Hold => {
  if (hold === null) throw new Error(`Job ${job_id} has no worker.`)
  return hold
}

const results = {
  backup: { job_type: "backup", made: snapshot },
  restore: { job_type: "restore", made: restored },
  maintenance: { job_type: "maintenance", made: { protected_until: null } },
  undelete: { job_type: "undelete", made: { protected_until: null } },
  restore_test: { job_type: "restore_test", made: { files: 1, bytes: 2 } },
  retention: { job_type: "retention" },
  target_enroll: { job_type: "target_enroll", made: enrolled },
  repo_format_upgrade: { job_type: "repo_format_upgrade", made: { to_format: 3 } },
} satisfies Record<JobFacts["job_type"], JobResult>

/** The worker accepts its job and completes it successfully. */
export const finish = Effect.fnUntraced(function* (job_id: JobId) {
  yield* start(job_id, "releasing")
  yield* complete(job_id)
})

/** The worker completes the last step of its job. */
export const complete = Effect.fnUntraced(function* (job_id: JobId) {
  const job = yield* factsOf(job_id)
  yield* ask(...completeJob(job, heldBy(job), results[job.job_type]))
})
