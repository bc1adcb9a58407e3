/**
 * All events of each aggregate that has rows or published events, and the state chart that permits
 * them.
 */
import type { AnyStateMachine } from "xstate"
import { machine as backupMachine } from "#actors/share-protection/backup.ts"
import { machine as domainMachine } from "#actors/share-protection/domain.ts"
import { machine as jobMachine } from "#actors/share-protection/job.ts"
import { machine as policyMachine } from "#actors/share-protection/policy.ts"
import { machine as reconciliationMachine } from "#actors/share-protection/reconciliation.ts"
import { machine as restoreMachine } from "#actors/share-protection/restore.ts"
import { machine as rolloutMachine } from "#actors/share-protection/rollout.ts"
import { machine as schedulerMachine } from "#actors/share-protection/scheduler.ts"
import { machine as targetMachine } from "#actors/share-protection/target.ts"
import { machine as templateMachine } from "#actors/share-protection/target-template.ts"
import { machine as workerMachine } from "#actors/share-protection/worker.ts"
import type { BackupEvent } from "#events/share-protection/backup.ts"
import type { DomainEvent } from "#events/share-protection/domain.ts"
import type { JobEvent } from "#events/share-protection/job.ts"
import type { PolicyEvent } from "#events/share-protection/policy.ts"
import type { ReconciliationEvent } from "#events/share-protection/reconciliation.ts"
import type { RestoreEvent } from "#events/share-protection/restore.ts"
import type { RolloutEvent } from "#events/share-protection/rollout.ts"
import type { SchedulerEvent } from "#events/share-protection/scheduler.ts"
import type { TargetEvent } from "#events/share-protection/target.ts"
import type { TargetTemplateEvent } from "#events/share-protection/target-template.ts"
import type { WorkerEvent } from "#events/share-protection/worker.ts"
import type { Message } from "#schemas/message.ts"
import { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { job_steps } from "#schemas/share-protection/job.ts"
import {
  advanced,
  assigned,
  failed as job_failed,
  rejected as job_rejected,
  started as job_started,
  queued,
  until,
} from "./job-samples.ts"
import {
  adopted,
  at,
  backup,
  backup_id,
  jobId,
  later,
  other_backup_id,
  plan,
  policy,
  policy_id,
  project_id,
  restore,
  restore_id,
  restored,
  secretRef,
  snapshot,
  template,
} from "./samples.ts"
import {
  backup_registered,
  created,
  deleted,
  deregistered,
  completed as enrolled,
  failed as enrollment_failed,
  extended,
  measured,
  moved,
  policy_deregistered,
  policy_registered,
  preflighted,
  renamed,
  restarted,
  upgrade_failed,
  upgrade_started,
  upgraded,
} from "./target-samples.ts"

const target: ReadonlyArray<TargetEvent> = [
  created,
  enrolled,
  enrollment_failed,
  restarted,
  renamed,
  moved,
  preflighted,
  measured,
  { ...preflighted, capabilities: null, reason: "reachability", at },
  {
    type: "TargetUpdated",
    region: "south",
    trust_id: null,
    vault_secret_map: null,
    ca_cert_ref: secretRef(9),
  },
  {
    type: "TargetUpdated",
    vault_secret_map: { access_key: secretRef(5), secret_key: secretRef(6) },
  },
  upgrade_started,
  upgraded,
  upgrade_failed,
  policy_registered,
  policy_deregistered,
  backup_registered,
  deregistered(1),
  extended,
  deleted,
]

const target_template: ReadonlyArray<TargetTemplateEvent> = [
  { type: "TargetTemplateCreated", ...template },
  { type: "TargetTemplateUpdated", name: "Another", default_retention: null },
  { type: "TargetTemplateUpdated", default_retention: { keep_daily: 1 } },
  { type: "TemplateTargetRegistered" },
  { type: "TemplateTargetDeregistered" },
  { type: "TemplatePolicyRegistered" },
  { type: "TemplatePolicyDeregistered" },
  { type: "TargetTemplateDeleted" },
]

const policies: ReadonlyArray<PolicyEvent> = [
  { type: "PolicyDefined", ...policy },
  { type: "PolicyUpdated", policy_id, enabled: false, retention: { keep_last: 1 } },
  { type: "PolicyUpdated", policy_id, schedule: "0 3 * * *", include_patterns: ["/a"] },
  { type: "PolicyDeleted", policy_id, project_id },
  { type: "ShareBackupStarted", backup_id, policy_id, tick: at },
  { type: "ShareBackupStarted", backup_id: other_backup_id, policy_id: null, tick: null },
  { type: "ShareBackupFinished", backup_id },
  { type: "ShareBackupFinished", backup_id: other_backup_id },
  { type: "TickSkipped", policy_id, tick: later, reason: "quota_exceeded" },
]

const completed = { type: "BackupCompleted", ...snapshot } as const

const of_test = { share_id: backup.share_id, taken_at: snapshot.taken_at }

const backups: ReadonlyArray<BackupEvent> = [
  { type: "BackupRequested", ...backup },
  { type: "BackupQueued" },
  { type: "BackupStarted" },
  completed,
  { ...completed, crash_consistent: false, partial: true, bytes: 7, protected_until: later },
  { type: "BackupFailed", reason: "The engine exited with 1." },
  { type: "BackupRetried" },
  { type: "BackupExpired" },
  { type: "BackupDeleted", at: later, expired: false },
  { type: "BackupDeleted", at: later, expired: true },
  { type: "BackupRestoreStarted", restore_id },
  { type: "BackupRestoreFinished", restore_id },
  { type: "BackupAdopted", ...adopted },
  { type: "BackupLost", reason: "It is not in the repository." },
  { type: "BackupUndeleteStarted" },
  { type: "BackupUndeleted", protected_until: later },
  { type: "BackupUndeleteFailed", reason: "It is gone." },
  { type: "BackupRestoreTested", ...of_test, files: 3, bytes: 30 },
  { type: "BackupRestoreTestFailed", ...of_test, reason: "A file differs." },
]

const restores: ReadonlyArray<RestoreEvent> = [
  { type: "RestoreRequested", ...restore },
  { type: "RestoreQueued" },
  { type: "RestoreStarted" },
  { type: "RestoreCompleted", ...restored },
  { type: "RestoreCompleted", ...restored, new_share_id: null, plan },
  { type: "RestoreFailed", reason: "The engine exited with 1." },
  { type: "RestoreRetried" },
]

const jobs: ReadonlyArray<JobEvent> = [
  queued,
  assigned,
  job_started,
  job_failed,
  job_rejected,
  ...job_steps.slice(1).map(advanced),
  { type: "JobUnassigned", worker_id: assigned.worker_id, fence: assigned.fence },
  { type: "JobCompleted", worker_id: assigned.worker_id, fence: assigned.fence },
  { type: "JobCancelled" },
  { type: "JobRetried", attempt: 2, automatic: false },
  { type: "JobRetried", attempt: 2, automatic: true },
  { type: "JobRecast", count: 1 },
]

const place = { project_id: ProjectId.make("workers"), domain_id: DomainId.make("canary") }
const words = { hostname: "host-1", image_version: "image-2", engine_version: "0.18.0" }
const slot = { job_id: jobId(1), fence: 1 }
const other_slot = { job_id: jobId(2), fence: 2 }

const workers: ReadonlyArray<WorkerEvent> = [
  { type: "WorkerBootStarted", ...place, image: "image-2" },
  { type: "WorkerBootFailed", reason: "It did not come up." },
  { type: "WorkerRegistered", ...place, ...words, capacity_slots: 2 },
  { type: "WorkerJobAssigned", ...slot },
  { type: "WorkerJobAssigned", ...other_slot },
  { type: "WorkerJobReleased", ...slot },
  { type: "WorkerJobReleased", ...other_slot },
  { type: "WorkerDrainStarted" },
  { type: "WorkerUndrained" },
  { type: "WorkerRetirementStarted" },
  { type: "WorkerRetired" },
  { type: "WorkerDied", reason: "Nothing was heard of it." },
]

const pair = { old_worker_id: WorkerId.make("old"), new_worker_id: WorkerId.make("new") }
const [canary, rest] = [DomainId.make("canary"), DomainId.make("rest")]

const rollouts: ReadonlyArray<RolloutEvent> = [
  { type: "RolloutCreated", image: "image-2", domain_ids: [canary, rest] },
  ...[canary, rest].flatMap(
    (domain_id): ReadonlyArray<RolloutEvent> => [
      { type: "ReplacementStarted", ...pair, domain_id },
      { type: "ReplacementCompleted", ...pair, domain_id },
      { type: "RolloutDomainCompleted", domain_id },
      { type: "RolloutHalted", ...pair, domain_id, reason: "It did not come up." },
    ],
  ),
  { type: "RolloutSucceeded" },
]

const domains: ReadonlyArray<DomainEvent> = [
  { type: "DomainConfigured", min_workers: 2, quotas: { targets: 1 } },
  { type: "DomainConfigured", min_workers: null, worker_boot_image: "image-2" },
  { type: "DomainConfigured", max_workers: 9, quotas: null },
  { type: "DomainApplied" },
]

const schedulers: ReadonlyArray<SchedulerEvent> = [
  { type: "SchedulerPaused" },
  { type: "SchedulerResumed", at: later },
]

const drift = { loop: "orphan_sweep", kind: "snapshot_unknown", subject: "x", detail: "" } as const

const reconciliations: ReadonlyArray<ReconciliationEvent> = [
  { type: "ReconciliationTriggered" },
  { type: "ReconciliationStarted", at },
  { type: "ReconciliationFinished", drift: [drift], drift_count: 5 },
  { type: "ReconciliationFinished", drift: [], drift_count: 0 },
]

export interface Happening {
  readonly machine: AnyStateMachine
  readonly events: ReadonlyArray<Message>
  /** Histories that are too long for the set of short ones. */
  readonly long: ReadonlyArray<ReadonlyArray<Message>>
}

const was_upgraded = [created, enrolled, upgrade_started, upgraded]
const ran = until("releasing")
const ended = { type: "JobCompleted", worker_id: assigned.worker_id, fence: assigned.fence }

/** By aggregate name. */
export const happenings = {
  target: { machine: targetMachine, events: target, long: [was_upgraded] },
  "target-template": { machine: templateMachine, events: target_template, long: [] },
  policy: { machine: policyMachine, events: policies, long: [] },
  backup: { machine: backupMachine, events: backups, long: [] },
  restore: { machine: restoreMachine, events: restores, long: [] },
  job: { machine: jobMachine, events: jobs, long: [ran, [...ran, ended], [...ran, job_failed]] },
  worker: { machine: workerMachine, events: workers, long: [] },
  rollout: { machine: rolloutMachine, events: rollouts, long: [] },
  domain: { machine: domainMachine, events: domains, long: [] },
  scheduler: { machine: schedulerMachine, events: schedulers, long: [] },
  reconciliation: { machine: reconciliationMachine, events: reconciliations, long: [] },
} satisfies Readonly<Record<string, Happening>>
