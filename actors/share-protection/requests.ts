/**
 * Requests: builds the atomic batch of commands for a request of a tenant or an operator.
 *
 * Each rule lives in the aggregate that enforces it. The first rejection is the error of the whole
 * request, so the order of a batch decides which error takes precedence.
 *
 * Source: DESIGN of the running system, 2; document 2 §4; DECISIONS, document 2.
 */
import { type Addressed, address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job } from "#actors/share-protection/job.ts"
import { Lease } from "#actors/share-protection/lease.ts"
import { Ledger } from "#actors/share-protection/ledger.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { Restore } from "#actors/share-protection/restore.ts"
import { Target } from "#actors/share-protection/target.ts"
import { TargetTemplate } from "#actors/share-protection/target-template.ts"
import {
  AdoptBackup,
  DeleteBackup,
  ExpireBackup,
  type Forgotten,
  RequestBackup,
  StartBackupRestore,
  StartBackupUndelete,
} from "#schemas/share-protection/backup.ts"
import type {
  BackupId,
  DomainId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { CancelJob, QueueJob } from "#schemas/share-protection/job.ts"
import { CloseLease } from "#schemas/share-protection/lease.ts"
import { type Counted, Release, Reserve } from "#schemas/share-protection/ledger.ts"
import { DefinePolicy, DeletePolicy, StartShareBackup } from "#schemas/share-protection/policy.ts"
import type { Rejection } from "#schemas/share-protection/rejection.ts"
import { RequestRestore } from "#schemas/share-protection/restore.ts"
import {
  CheckTargetReadable,
  CreateTarget,
  DeleteTarget,
  DeregisterTargetBackups,
  DeregisterTargetPolicy,
  RegisterTargetBackup,
  RegisterTargetPolicy,
  RestartEnrollment,
  StartFormatUpgrade,
} from "#schemas/share-protection/target.ts"
import {
  CreateTargetTemplate,
  DeleteTargetTemplate,
  DeregisterTemplatePolicy,
  DeregisterTemplateTarget,
  RegisterTemplatePolicy,
  RegisterTemplateTarget,
} from "#schemas/share-protection/target-template.ts"

/** Commands that are applied atomically. */
export type Batch = ReadonlyArray<Addressed<Rejection>>

type Fields<Message extends { readonly type: string }> = Omit<Message, "type">

type Owner = ProjectId | DomainId

const reserve = (owner: Owner, what: Counted, limit: number) =>
  address(Ledger, owner, Reserve.make({ what, limit }))
const release = (owner: Owner, what: Counted, count: number) =>
  address(Ledger, owner, Release.make({ what, count }))

/** Registers a bucket and queues its enrollment. Shared buckets count in no ledger. */
export const createTarget = (
  target_id: TargetId,
  target: Fields<typeof CreateTarget.Type>,
  limit: number,
): Batch => {
  const { project_id, template_id, job_id } = target
  return [
    ...(project_id === null ? [] : [reserve(project_id, "targets", limit)]),
    ...(template_id === null
      ? []
      : [address(TargetTemplate, template_id, RegisterTemplateTarget.make({}))]),
    address(Target, target_id, CreateTarget.make(target)),
    queueTargetJob(job_id, "target_enroll", target_id, project_id),
  ]
}

/** Retention and maintenance are idempotent, so failures are retried a few times. */
const service_retries_max = 5

const retries_of = {
  target_enroll: 0,
  repo_format_upgrade: 0,
  retention: service_retries_max,
  maintenance: service_retries_max,
}

/** Queues a job of the service itself on a target. */
export const queueTargetJob = (
  job_id: JobId,
  job_type: keyof typeof retries_of,
  target_id: TargetId,
  project_id: ProjectId | null,
  forget: ReadonlyArray<Forgotten> = [],
) =>
  address(
    Job,
    job_id,
    QueueJob.make({
      job_type,
      project_id,
      resource_type: "target",
      resource_id: target_id,
      target_id,
      share_id: null,
      backup_id: null,
      max_retries: retries_of[job_type],
      forget,
    }),
  )

/** Deletes a target's record; `waiting` are its unassigned jobs, which are cancelled. */
export const deleteTarget = (
  target_id: TargetId,
  {
    project_id,
    template_id,
  }: { project_id: ProjectId | null; template_id: TargetTemplateId | null },
  waiting: ReadonlyArray<JobId>,
): Batch => [
  address(Target, target_id, DeleteTarget.make({})),
  address(Lease, target_id, CloseLease.make({})),
  ...(project_id === null ? [] : [release(project_id, "targets", 1)]),
  ...(template_id === null
    ? []
    : [address(TargetTemplate, template_id, DeregisterTemplateTarget.make({}))]),
  ...waiting.map((job_id) => address(Job, job_id, CancelJob.make({}))),
]

/** Restarts a failed enrollment with a new job. */
export const restartEnrollment = (
  target_id: TargetId,
  project_id: ProjectId | null,
  job_id: JobId,
): Batch => [
  address(Target, target_id, RestartEnrollment.make({ job_id })),
  queueTargetJob(job_id, "target_enroll", target_id, project_id),
]

export const startFormatUpgrade = (
  target_id: TargetId,
  project_id: ProjectId | null,
  job_id: JobId,
): Batch => [
  address(Target, target_id, StartFormatUpgrade.make({ job_id })),
  queueTargetJob(job_id, "repo_format_upgrade", target_id, project_id),
]

/**
 * Creates a template. The domain's ledger counts it without a limit, so that only one of two
 * requests with the same key succeeds; a new aggregate cannot detect that.
 */
export const createTemplate = (
  template_id: TargetTemplateId,
  template: Fields<typeof CreateTargetTemplate.Type>,
): Batch => [
  address(TargetTemplate, template_id, CreateTargetTemplate.make(template)),
  reserve(template.domain_id, "templates", Number.MAX_SAFE_INTEGER),
]

export const deleteTemplate = (template_id: TargetTemplateId, domain_id: DomainId): Batch => [
  address(TargetTemplate, template_id, DeleteTargetTemplate.make({})),
  release(domain_id, "templates", 1),
]

export const definePolicy = (
  share_id: ShareId,
  policy: Fields<typeof DefinePolicy.Type>,
  limit: number,
): Batch => {
  const { target_id, target_template_id } = policy
  return [
    address(Policy, share_id, DefinePolicy.make(policy)),
    ...(target_id === null ? [] : [address(Target, target_id, RegisterTargetPolicy.make({}))]),
    ...(target_template_id === null
      ? []
      : [address(TargetTemplate, target_template_id, RegisterTemplatePolicy.make({}))]),
    reserve(policy.project_id, "policies", limit),
  ]
}

export const deletePolicy = (
  share_id: ShareId,
  {
    id,
    project_id,
    target_id,
    target_template_id,
  }: Pick<
    Fields<typeof DefinePolicy.Type>,
    "id" | "project_id" | "target_id" | "target_template_id"
  >,
): Batch => [
  address(Policy, share_id, DeletePolicy.make({ policy_id: id, project_id })),
  ...(target_id === null ? [] : [address(Target, target_id, DeregisterTargetPolicy.make({}))]),
  ...(target_template_id === null
    ? []
    : [address(TargetTemplate, target_template_id, DeregisterTemplatePolicy.make({}))]),
  release(project_id, "policies", 1),
]

export interface BackupRequest {
  readonly backup_id: BackupId
  readonly job_id: JobId
  readonly project_id: ProjectId
  readonly share_id: ShareId
  readonly target_id: TargetId
  readonly policy_id: PolicyId | null
  readonly crash_consistent_wanted: boolean | null
  /** The scheduled time; null on demand. */
  readonly tick: string | null
  /** The policy's maximum; 0 without a policy. */
  readonly max_retries: number
}

/** Requests a backup; `limit` is the project's quota of backups. */
export const requestBackup = (request: BackupRequest, limit: number): Batch => {
  const { backup_id, job_id, tick, max_retries, crash_consistent_wanted, ...about } = request
  const { project_id, share_id, target_id, policy_id } = about
  return [
    address(Policy, share_id, StartShareBackup.make({ backup_id, policy_id, tick })),
    address(Target, target_id, RegisterTargetBackup.make({})),
    reserve(project_id, "backups", limit),
    address(Backup, backup_id, RequestBackup.make({ ...about, job_id, crash_consistent_wanted })),
    address(
      Job,
      job_id,
      QueueJob.make({
        job_type: "backup",
        project_id,
        resource_type: "backup",
        resource_id: backup_id,
        target_id,
        share_id,
        backup_id,
        max_retries,
        forget: [],
      }),
    ),
  ]
}

/** Expired backups of one project in one target, with the ids of their snapshots. */
export interface ExpiredBackups {
  readonly project_id: ProjectId
  readonly target_id: TargetId
  /** At most `forgotten_max`. */
  readonly backups: ReadonlyArray<Forgotten>
  /** The retention job that forgets their snapshots. */
  readonly job_id: JobId
}

/** Expires backups that the retention policy does not keep. */
export const expireBackups = ({
  project_id,
  target_id,
  backups,
  job_id,
}: ExpiredBackups): Batch => [
  ...backups.map(({ backup_id }) => address(Backup, backup_id, ExpireBackup.make({}))),
  address(Target, target_id, DeregisterTargetBackups.make({ count: backups.length })),
  release(project_id, "backups", backups.length),
  queueTargetJob(job_id, "retention", target_id, project_id, backups),
]

/**
 * Deletes a backup's record and forgets its snapshot, if any. An expired backup is no longer
 * counted, and its snapshot is already forgotten.
 */
export const deleteBackup = (
  backup_id: BackupId,
  { project_id, target_id }: Pick<ExpiredBackups, "project_id" | "target_id">,
  { expired, forget }: { expired: boolean; forget?: Forgotten & { job_id: JobId } },
  at: string,
): Batch => [
  address(Backup, backup_id, DeleteBackup.make({ at, expired })),
  // Without a snapshot there is no lock to check.
  ...(expired ? [] : deregisterBackup(target_id, project_id, forget === undefined ? {} : { at })),
  ...(forget === undefined
    ? []
    : [
        queueTargetJob(forget.job_id, "retention", target_id, project_id, [
          { backup_id, engine_snapshot_id: forget.engine_snapshot_id },
        ]),
      ]),
]

/** Decrements the counts of backups. `at` is the time of a tenant's delete; a lock rejects it. */
export const deregisterBackup = (
  target_id: TargetId,
  project_id: ProjectId | null,
  when: { readonly at?: string } = {},
): Batch => [
  address(Target, target_id, DeregisterTargetBackups.make({ count: 1, ...when })),
  ...(project_id === null ? [] : [release(project_id, "backups", 1)]),
]

/** Starts the undelete of an expired backup, which counts in the quota again. */
export const startUndelete = (
  backup_id: BackupId,
  target_id: TargetId,
  project_id: ProjectId | null,
  limit = Number.MAX_SAFE_INTEGER,
): Batch => [
  address(Backup, backup_id, StartBackupUndelete.make({})),
  address(Target, target_id, RegisterTargetBackup.make({})),
  ...(project_id === null ? [] : [reserve(project_id, "backups", limit)]),
]

/** A backup with its project, share and target. */
export interface BackupPlace {
  readonly backup_id: BackupId
  readonly project_id: ProjectId
  readonly share_id: ShareId
  readonly target_id: TargetId
}

/** Queues a job for one existing or expired backup. */
const queueBackupJob = (
  job_id: JobId,
  job_type: "undelete" | "restore_test",
  { backup_id, ...about }: BackupPlace,
) =>
  address(
    Job,
    job_id,
    QueueJob.make({
      job_type,
      resource_type: "backup",
      resource_id: backup_id,
      backup_id,
      ...about,
      max_retries: 0,
      forget: [],
    }),
  )

/** Undeletes an expired backup; `limit` is the project's quota of backups. */
export const undeleteBackup = (job_id: JobId, backup: BackupPlace, limit: number): Batch => [
  ...startUndelete(backup.backup_id, backup.target_id, backup.project_id, limit),
  queueBackupJob(job_id, "undelete", backup),
]

/** Queues a restore test of a backup. */
export const testBackup = (job_id: JobId, backup: BackupPlace): Batch => [
  queueBackupJob(job_id, "restore_test", backup),
]

/** Creates a record for an unknown snapshot; it counts like any other backup. */
export const adoptBackup = (
  backup_id: BackupId,
  backup: Fields<typeof AdoptBackup.Type>,
  limit: number,
): Batch => [
  address(Backup, backup_id, AdoptBackup.make(backup)),
  address(Target, backup.target_id, RegisterTargetBackup.make({})),
  reserve(backup.project_id, "backups", limit),
]

export const requestRestore = (
  restore_id: RestoreId,
  restore: Fields<typeof RequestRestore.Type>,
): Batch => {
  const { backup_id, target_id, job_id, project_id, share_id } = restore
  return [
    address(Backup, backup_id, StartBackupRestore.make({ restore_id })),
    address(Target, target_id, CheckTargetReadable.make({})),
    address(Restore, restore_id, RequestRestore.make(restore)),
    address(
      Job,
      job_id,
      QueueJob.make({
        job_type: "restore",
        project_id,
        resource_type: "restore",
        resource_id: restore_id,
        target_id,
        share_id,
        backup_id,
        max_retries: 0,
        forget: [],
      }),
    ),
  ]
}
