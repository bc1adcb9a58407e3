/**
 * A job's course: what each step of a job means for its resource, its worker and the repository's
 * lease, as one atomic batch.
 *
 * A job's slot and its hold of the lease go together, and stay until nothing of the job runs any
 * more: so no repository has two writers, though a job has ended for its tenant already.
 *
 * Source: DESIGN of the running system, 2; document 2 §3 Job; DECISIONS, document 2, cancel, retry.
 */
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job } from "#actors/share-protection/job.ts"
import { Lease } from "#actors/share-protection/lease.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { type Batch, deregisterBackup, startUndelete } from "#actors/share-protection/requests.ts"
import { Restore } from "#actors/share-protection/restore.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import {
  CompleteBackup,
  CompleteBackupUndelete,
  FailBackup,
  FailBackupUndelete,
  FailRestoreTest,
  FinishBackupRestore,
  QueueBackup,
  RecordRestoreTest,
  RetryBackup,
  StartBackup,
  StartBackupRestore,
} from "#schemas/share-protection/backup.ts"
import type {
  BackupId,
  JobId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
  WorkerId,
} from "#schemas/share-protection/id.ts"
import {
  BackupId as backupId,
  RestoreId as restoreId,
  TargetId as targetId,
} from "#schemas/share-protection/id.ts"
import {
  AssignJob,
  CancelJob,
  CompleteJob,
  FailJob,
  type JobType,
  RejectJob,
  RetryJob,
  StartJob,
  UnassignJob,
} from "#schemas/share-protection/job.ts"
import {
  AcquireLease,
  BreakLease,
  type LeaseMode,
  ReleaseLease,
} from "#schemas/share-protection/lease.ts"
import { FinishShareBackup, StartShareBackup } from "#schemas/share-protection/policy.ts"
import type { ErrorCode } from "#schemas/share-protection/rejection.ts"
import {
  CompleteRestore,
  FailRestore,
  QueueRestore,
  RetryRestore,
  StartRestore,
} from "#schemas/share-protection/restore.ts"
import {
  CompleteEnrollment,
  CompleteFormatUpgrade,
  FailEnrollment,
  FailFormatUpgrade,
  RecordTargetLocks,
  RestartEnrollment,
  StartFormatUpgrade,
} from "#schemas/share-protection/target.ts"
import { AssignWorkerJob, ReleaseWorkerJob } from "#schemas/share-protection/worker.ts"

type Fields<Message extends { readonly type: string }> = Omit<Message, "type">

/** What an operation must know of a job; `hold` is its place on a worker and in the lease. */
export interface JobFacts {
  readonly job_id: JobId
  readonly job_type: JobType
  readonly resource_id: string
  readonly target_id: TargetId
  /** Null on a bucket that projects share. */
  readonly project_id: ProjectId | null
  readonly share_id: ShareId | null
  readonly backup_id: BackupId | null
  readonly hold: Hold | null
}

export interface Hold {
  readonly worker_id: WorkerId
  readonly fence: number
}

/** How a job of this type holds the repository. */
export const lease_modes: Readonly<Record<JobType, LeaseMode>> = {
  backup: "write",
  restore: "read",
  target_enroll: "exclusive",
  retention: "exclusive",
  maintenance: "exclusive",
  repo_format_upgrade: "exclusive",
  // It changes what the repository's index says, which nobody may read meanwhile.
  undelete: "exclusive",
  restore_test: "read",
}

/** The target is enrolled: what the job makes waits for a worker from here. */
export const admitJob = ({ job_type, resource_id }: JobFacts): Batch => {
  if (job_type === "backup") return [address(Backup, resource_id, QueueBackup.make({}))]
  if (job_type === "restore") return [address(Restore, resource_id, QueueRestore.make({}))]
  return []
}

/** Gives a job to a worker: a slot of it, the repository's lease, and the job itself. */
export const assignJob = ({ job_id, job_type, target_id }: JobFacts, hold: Hold): Batch => {
  const { worker_id, fence } = hold
  const mode = lease_modes[job_type]
  return [
    address(Job, job_id, AssignJob.make(hold)),
    address(Worker, worker_id, AssignWorkerJob.make({ job_id, fence })),
    address(Lease, target_id, AcquireLease.make({ job_id, worker_id, mode, fence })),
  ]
}

/** The job's slot and lease are free again: nothing of it runs any more. */
export const settleJob = (
  { job_id, target_id }: Pick<JobFacts, "job_id" | "target_id">,
  { worker_id, fence }: Hold,
): Batch => [
  address(Worker, worker_id, ReleaseWorkerJob.make({ job_id, fence })),
  address(Lease, target_id, ReleaseLease.make({ job_id, fence })),
]

/** The worker did not take the job in time. */
export const unassignJob = (job: JobFacts, hold: Hold): Batch => [
  address(Job, job.job_id, UnassignJob.make(hold)),
  ...settleJob(job, hold),
]

/** The worker takes the job. */
export const startJob = ({ job_id, job_type, resource_id }: JobFacts, hold: Hold): Batch => [
  address(Job, job_id, StartJob.make(hold)),
  ...(job_type === "backup" ? [address(Backup, resource_id, StartBackup.make({}))] : []),
  ...(job_type === "restore" ? [address(Restore, resource_id, StartRestore.make({}))] : []),
]

/** What came of a job, by its type. */
export type Result =
  | { readonly job_type: "backup"; readonly made: Fields<typeof CompleteBackup.Type> }
  | { readonly job_type: "restore"; readonly made: Fields<typeof CompleteRestore.Type> }
  | {
      readonly job_type: "target_enroll"
      readonly made: Omit<Fields<typeof CompleteEnrollment.Type>, "job_id">
    }
  | { readonly job_type: "repo_format_upgrade"; readonly made: { readonly to_format: number } }
  | {
      readonly job_type: "maintenance"
      /** Null where the bucket locks nothing. */
      readonly made: { readonly protected_until: string | null }
    }
  | { readonly job_type: "undelete"; readonly made: Fields<typeof CompleteBackupUndelete.Type> }
  | { readonly job_type: "restore_test"; readonly made: Fields<typeof RecordRestoreTest.Type> }
  | { readonly job_type: "retention" }

/** The job ended well; nothing of it runs any more. */
export const completeJob = (job: JobFacts, hold: Hold, result: Result): Batch => [
  address(Job, job.job_id, CompleteJob.make(hold)),
  ...completed(job, result),
  ...settleJob(job, hold),
]

const completed = (
  { job_id, resource_id, share_id, backup_id }: JobFacts,
  result: Result,
): Batch => {
  switch (result.job_type) {
    case "backup":
      return [
        address(Backup, resource_id, CompleteBackup.make(result.made)),
        ...finishShareBackup(share_id, backup_id),
      ]
    case "restore":
      return [
        address(Restore, resource_id, CompleteRestore.make(result.made)),
        ...finishBackupRestore(backup_id, resource_id),
      ]
    case "target_enroll":
      return [address(Target, resource_id, CompleteEnrollment.make({ job_id, ...result.made }))]
    case "repo_format_upgrade":
      return [address(Target, resource_id, CompleteFormatUpgrade.make({ job_id, ...result.made }))]
    case "maintenance": {
      const { protected_until } = result.made
      if (protected_until === null) return []
      return [address(Target, resource_id, RecordTargetLocks.make({ protected_until }))]
    }
    case "undelete":
      return [address(Backup, resource_id, CompleteBackupUndelete.make(result.made))]
    case "restore_test":
      return [address(Backup, resource_id, RecordRestoreTest.make(result.made))]
    case "retention":
      return []
  }
}

const finishShareBackup = (share_id: ShareId | null, backup_id: BackupId | null): Batch =>
  share_id === null || backup_id === null
    ? []
    : [address(Policy, share_id, FinishShareBackup.make({ backup_id }))]

const finishBackupRestore = (backup_id: BackupId | null, restore_id: string): Batch =>
  backup_id === null
    ? []
    : [
        address(
          Backup,
          backup_id,
          FinishBackupRestore.make({ restore_id: restoreId.make(restore_id) }),
        ),
      ]

/** Failures that tell of a backup that it cannot be restored, and not only that nobody tried. */
const verdicts = new Set<ErrorCode>(["svc.engine_error", "svc.trust_access_denied"])

type Failed = Pick<JobFailure, "code" | "detail">

/** What becomes of the job's resource when the job ends without success. */
const failed = (job: JobFacts, { code, detail: reason }: Failed): Batch => {
  const { job_id, job_type, resource_id, target_id, project_id, share_id, backup_id } = job
  switch (job_type) {
    case "backup":
      return [
        address(Backup, resource_id, FailBackup.make({ reason })),
        ...finishShareBackup(share_id, backup_id),
      ]
    case "restore":
      return [
        address(Restore, resource_id, FailRestore.make({ reason })),
        ...finishBackupRestore(backup_id, resource_id),
      ]
    case "target_enroll":
      return [address(Target, resource_id, FailEnrollment.make({ job_id, reason }))]
    case "repo_format_upgrade":
      return [address(Target, resource_id, FailFormatUpgrade.make({ job_id, reason }))]
    case "undelete":
      return [
        address(Backup, resource_id, FailBackupUndelete.make({ reason })),
        ...deregisterBackup(target_id, project_id),
      ]
    case "restore_test":
      return verdicts.has(code)
        ? [address(Backup, resource_id, FailRestoreTest.make({ reason }))]
        : []
    case "retention":
    case "maintenance":
      return []
  }
}

/** Why a job failed, as its error tells it. */
export type JobFailure = Fields<typeof RejectJob.Type>

/** The worker gave up; nothing of the job runs any more. */
export const failJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  address(Job, job.job_id, FailJob.make({ ...hold, ...failure })),
  ...failed(job, failure),
  ...settleJob(job, hold),
]

/** The job ends while its engine may still run: its slot and its lease stay until that stopped. */
export const abandonJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  address(Job, job.job_id, FailJob.make({ ...hold, ...failure })),
  ...failed(job, failure),
]

/** The worker is proven dead, and the job with it. */
export const failLostJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  ...abandonJob(job, hold, failure),
  ...breakHold(job, hold, failure.detail),
]

/** What a dead worker held for a job that had ended already. */
export const breakHold = (
  { job_id, target_id }: Pick<JobFacts, "job_id" | "target_id">,
  { worker_id, fence }: Hold,
  reason: string,
): Batch => [
  address(Worker, worker_id, ReleaseWorkerJob.make({ job_id, fence })),
  address(Lease, target_id, BreakLease.make({ job_id, fence, reason })),
]

/** No worker will ever take it. */
export const rejectJob = (job: JobFacts, failure: JobFailure): Batch => [
  address(Job, job.job_id, RejectJob.make(failure)),
  ...failed(job, failure),
]

/** Its slot and its lease stay until the worker says that the engine stopped. */
export const cancelJob = (job: JobFacts): Batch => [
  address(Job, job.job_id, CancelJob.make({})),
  ...failed(job, { code: "svc.conflict", detail: "cancelled" }),
]

/** A new attempt after an error. `policy_id` is the one that the backup has now. */
export const retryJob = (
  job: JobFacts,
  { automatic, policy_id }: { automatic: boolean; policy_id: PolicyId | null },
): Batch => [address(Job, job.job_id, RetryJob.make({ automatic })), ...retried(job, policy_id)]

const retried = (job: JobFacts, policy_id: PolicyId | null): Batch => {
  const { job_id, job_type, resource_id, target_id, project_id, share_id, backup_id } = job
  switch (job_type) {
    case "backup":
      return [
        address(Backup, resource_id, RetryBackup.make({})),
        ...(share_id === null || backup_id === null
          ? []
          : [
              address(
                Policy,
                share_id,
                StartShareBackup.make({ backup_id, policy_id, tick: null }),
              ),
            ]),
      ]
    case "restore": {
      const restore_id = restoreId.make(resource_id)
      return [
        address(Restore, resource_id, RetryRestore.make({})),
        ...(backup_id === null
          ? []
          : [address(Backup, backup_id, StartBackupRestore.make({ restore_id }))]),
      ]
    }
    case "target_enroll":
      return [address(Target, resource_id, RestartEnrollment.make({ job_id }))]
    case "repo_format_upgrade":
      return [address(Target, targetId.make(resource_id), StartFormatUpgrade.make({ job_id }))]
    case "undelete":
      // What an operator wants back is within no limit.
      return startUndelete(backupId.make(resource_id), target_id, project_id)
    case "retention":
    case "maintenance":
    case "restore_test":
      return []
  }
}
