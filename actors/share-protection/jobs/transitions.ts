/**
 * Job transitions: builds the atomic batch for each step of a job, across the job, its resource,
 * its worker and the repository's lease.
 *
 * A job keeps its slot and its lease hold together until no part of it is running, even if it has
 * already ended for its tenant. So no repository ever has two writers.
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

/** The facts about a job that a transition needs; `hold` is its worker slot and its lease hold. */
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

/** The lease mode of each job type. */
export const lease_modes: Readonly<Record<JobType, LeaseMode>> = {
  backup: "write",
  restore: "read",
  target_enroll: "exclusive",
  retention: "exclusive",
  maintenance: "exclusive",
  repo_format_upgrade: "exclusive",
  // An undelete rewrites the repository's index, so no reader may run at the same time.
  undelete: "exclusive",
  restore_test: "read",
}

/** The target is enrolled: queues the job's backup or restore for a worker. */
export const admitJob = ({ job_type, resource_id }: JobFacts): Batch => {
  if (job_type === "backup") return [address(Backup, resource_id, QueueBackup.make({}))]
  if (job_type === "restore") return [address(Restore, resource_id, QueueRestore.make({}))]
  return []
}

/** Assigns a job to a worker: takes the job, one of the worker's slots and the lease. */
export const assignJob = ({ job_id, job_type, target_id }: JobFacts, hold: Hold): Batch => {
  const { worker_id, fence } = hold
  const mode = lease_modes[job_type]
  return [
    address(Job, job_id, AssignJob.make(hold)),
    address(Worker, worker_id, AssignWorkerJob.make({ job_id, fence })),
    address(Lease, target_id, AcquireLease.make({ job_id, worker_id, mode, fence })),
  ]
}

/** Releases the job's slot and lease: no part of the job is still running. */
export const settleJob = (
  { job_id, target_id }: Pick<JobFacts, "job_id" | "target_id">,
  { worker_id, fence }: Hold,
): Batch => [
  address(Worker, worker_id, ReleaseWorkerJob.make({ job_id, fence })),
  address(Lease, target_id, ReleaseLease.make({ job_id, fence })),
]

/** Unassigns a job that the worker did not accept in time. */
export const unassignJob = (job: JobFacts, hold: Hold): Batch => [
  address(Job, job.job_id, UnassignJob.make(hold)),
  ...settleJob(job, hold),
]

/** The worker starts the job. */
export const startJob = ({ job_id, job_type, resource_id }: JobFacts, hold: Hold): Batch => [
  address(Job, job_id, StartJob.make(hold)),
  ...(job_type === "backup" ? [address(Backup, resource_id, StartBackup.make({}))] : []),
  ...(job_type === "restore" ? [address(Restore, resource_id, StartRestore.make({}))] : []),
]

/** The result of a job, by job type. */
export type JobResult =
  | { readonly job_type: "backup"; readonly made: Fields<typeof CompleteBackup.Type> }
  | { readonly job_type: "restore"; readonly made: Fields<typeof CompleteRestore.Type> }
  | {
      readonly job_type: "target_enroll"
      readonly made: Omit<Fields<typeof CompleteEnrollment.Type>, "job_id">
    }
  | { readonly job_type: "repo_format_upgrade"; readonly made: { readonly to_format: number } }
  | {
      readonly job_type: "maintenance"
      /** Null if the bucket has no object lock. */
      readonly made: { readonly protected_until: string | null }
    }
  | { readonly job_type: "undelete"; readonly made: Fields<typeof CompleteBackupUndelete.Type> }
  | { readonly job_type: "restore_test"; readonly made: Fields<typeof RecordRestoreTest.Type> }
  | { readonly job_type: "retention" }

/** The job succeeded; no part of it is still running. */
export const completeJob = (job: JobFacts, hold: Hold, result: JobResult): Batch => [
  address(Job, job.job_id, CompleteJob.make(hold)),
  ...completeResource(job, result),
  ...settleJob(job, hold),
]

const completeResource = (
  { job_id, resource_id, share_id, backup_id }: JobFacts,
  result: JobResult,
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

/** Failures that prove a backup unrestorable, rather than that the test could not run. */
const unrestorable_codes = new Set<ErrorCode>(["svc.engine_error", "svc.trust_access_denied"])

type FailureReason = Pick<JobFailure, "code" | "detail">

/** Fails the job's resource when the job ends without success. */
const failResource = (job: JobFacts, { code, detail: reason }: FailureReason): Batch => {
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
      return unrestorable_codes.has(code)
        ? [address(Backup, resource_id, FailRestoreTest.make({ reason }))]
        : []
    case "retention":
    case "maintenance":
      return []
  }
}

/** The error that a failed job records. */
export type JobFailure = Fields<typeof RejectJob.Type>

/** The worker reports a failure; no part of the job is still running. */
export const failJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  address(Job, job.job_id, FailJob.make({ ...hold, ...failure })),
  ...failResource(job, failure),
  ...settleJob(job, hold),
]

/** Fails a job whose engine may still run: its slot and lease stay held until the engine stops. */
export const abandonJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  address(Job, job.job_id, FailJob.make({ ...hold, ...failure })),
  ...failResource(job, failure),
]

/** Fails a job whose worker is proven dead. */
export const failLostJob = (job: JobFacts, hold: Hold, failure: JobFailure): Batch => [
  ...abandonJob(job, hold, failure),
  ...breakHold(job, hold, failure.detail),
]

/** Frees the slot and the lease hold of a dead worker for a job that has already ended. */
export const breakHold = (
  { job_id, target_id }: Pick<JobFacts, "job_id" | "target_id">,
  { worker_id, fence }: Hold,
  reason: string,
): Batch => [
  address(Worker, worker_id, ReleaseWorkerJob.make({ job_id, fence })),
  address(Lease, target_id, BreakLease.make({ job_id, fence, reason })),
]

/** Fails a job that no worker will ever take. */
export const rejectJob = (job: JobFacts, failure: JobFailure): Batch => [
  address(Job, job.job_id, RejectJob.make(failure)),
  ...failResource(job, failure),
]

/** Its slot and lease stay held until the worker reports that the engine stopped. */
export const cancelJob = (job: JobFacts): Batch => [
  address(Job, job.job_id, CancelJob.make({})),
  ...failResource(job, { code: "svc.conflict", detail: "cancelled" }),
]

/** Starts a new attempt after an error. `policy_id` is the backup's current policy. */
export const retryJob = (
  job: JobFacts,
  { automatic, policy_id }: { automatic: boolean; policy_id: PolicyId | null },
): Batch => [
  address(Job, job.job_id, RetryJob.make({ automatic })),
  ...retryResource(job, policy_id),
]

const retryResource = (job: JobFacts, policy_id: PolicyId | null): Batch => {
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
      // An undelete that an operator retries is exempt from the quota.
      return startUndelete(backupId.make(resource_id), target_id, project_id)
    case "retention":
    case "maintenance":
    case "restore_test":
      return []
  }
}
