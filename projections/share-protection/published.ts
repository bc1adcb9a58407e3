/**
 * Published events of share protection.
 *
 * Fields of the resource that an event omits come from the state in its commit. An event carries
 * its resource's project; events without a project are for operators. Secrets, their locations and
 * trusts are never published. A halted rollout is published under its documented name only.
 */
import { Schema, Struct } from "effect"
import { BackupEvent } from "#events/share-protection/backup.ts"
import { JobEvent } from "#events/share-protection/job.ts"
import { PolicyEvent } from "#events/share-protection/policy.ts"
import { ReconciliationEvent } from "#events/share-protection/reconciliation.ts"
import { RestoreEvent } from "#events/share-protection/restore.ts"
import { RolloutEvent } from "#events/share-protection/rollout.ts"
import { SchedulerEvent } from "#events/share-protection/scheduler.ts"
import { TargetEvent } from "#events/share-protection/target.ts"
import { WorkerEvent } from "#events/share-protection/worker.ts"
import type { Place } from "#projections/projection.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import { request_fields } from "#schemas/share-protection/backup.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { job_fields } from "#schemas/share-protection/job.ts"
import type { published as types } from "#schemas/share-protection/published.ts"
import { restore_fields } from "#schemas/share-protection/restore.ts"
import { CreateRollout } from "#schemas/share-protection/rollout.ts"
import { target_fields } from "#schemas/share-protection/target.ts"
import { Count } from "#schemas/share-protection/text.ts"

type Draft = EventDraftOf<typeof types>

/** Decodes a part of the state after the commit. */
const state = <State>(schema: Schema.ConstraintCodec<State, unknown>) => {
  const decode = Schema.decodeUnknownSync(schema)
  return ({ commit }: Place) => decode(commit.snapshot.context)
}

/** A field that is omitted if its value is null. */
const optionalField = <const Name extends string, Value>(name: Name, value: Value | null) =>
  // One field of this name, or none.
  (value === null ? {} : { [name]: value }) as { readonly [_ in Name]?: Value }

/** The owning project. */
const of = (project_id: string | null) => (project_id === null ? {} : { project_id })

const targetState = state(Schema.Struct(Struct.pick(target_fields, ["project_id"])))

const target = publication({
  part: "share-protection.target",
  event: TargetEvent,
  toDraft: (event, place): Draft | undefined => {
    const { project_id } = targetState(place)
    const target_id = place.id
    const own = of(project_id)
    switch (event.type) {
      case "TargetCreated": {
        const { name, bucket, template_id, job_id } = event
        const data = {
          target_id,
          name,
          bucket,
          job_id,
          ...optionalField("template_id", template_id),
        }
        return { type: "target_created", ...own, data }
      }
      case "TargetUpdated":
        return { type: "target_updated", ...own, data: { target_id, changed: changedBy(event) } }
      case "TargetEnrolled": {
        const { job_id, format, engine_profile } = event
        const data = { target_id, job_id, format, engine_profile }
        return { type: "target_enrolled", ...own, data }
      }
      case "TargetEnrollmentFailed": {
        const { job_id, reason } = event
        return { type: "target_enrollment_failed", ...own, data: { target_id, job_id, reason } }
      }
      case "TargetFormatUpgraded": {
        const { from_format: from_version, to_format: to_version, job_id } = event
        const occurred_at = place.commit.at
        const data = { target_id, project_id, from_version, to_version, job_id, occurred_at }
        return { type: "target_repo_format_upgraded", ...own, data }
      }
      case "TargetDeleted":
        return { type: "target_deleted", ...own, data: { target_id } }
      case "TargetEnrollmentRestarted":
      case "TargetPreflighted":
      case "TargetPolicyRegistered":
      case "TargetPolicyDeregistered":
      case "TargetBackupRegistered":
      case "TargetBackupsDeregistered":
      case "TargetFormatUpgradeStarted":
      case "TargetFormatUpgradeFailed":
      case "TargetUsageMeasured":
      case "TargetLocksExtended":
        return undefined
    }
  },
})

/** Sorted names: the order within the event is not guaranteed. */
const changedBy = (event: object) =>
  Object.keys(event)
    .filter((field) => field !== "type" && field !== "policy_id")
    .sort()

const policyState = state(
  Schema.Struct({ policy: Schema.NullOr(Schema.Struct({ project_id: ProjectId })) }),
)

const policy = publication({
  part: "share-protection.policy",
  event: PolicyEvent,
  toDraft: (event, place): Draft | undefined => {
    const share_id = place.id
    const policyProject = () => of(policyState(place).policy?.project_id ?? null)
    switch (event.type) {
      case "PolicyDefined": {
        const { id: policy_id, project_id, name, schedule, timezone, enabled } = event
        const to = {
          ...optionalField("target_id", event.target_id),
          ...optionalField("target_template_id", event.target_template_id),
        }
        const data = { policy_id, share_id, name, schedule, timezone, enabled, ...to }
        return { type: "policy_created", subject: policy_id, project_id, data }
      }
      case "PolicyUpdated": {
        const { policy_id } = event
        const data = { policy_id, share_id, changed: changedBy(event) }
        return { type: "policy_updated", subject: policy_id, ...policyProject(), data }
      }
      case "PolicyDeleted": {
        const { policy_id, project_id } = event
        const data = { policy_id, share_id }
        return { type: "policy_deleted", subject: policy_id, project_id, data }
      }
      case "TickSkipped": {
        const { policy_id, tick, reason } = event
        const data = { policy_id, share_id, tick, reason }
        return { type: "scheduled_backup_skipped", subject: policy_id, ...policyProject(), data }
      }
      case "ShareBackupStarted":
      case "ShareBackupFinished":
        return undefined
    }
  },
})

const backupState = state(
  Schema.Struct(Struct.pick(request_fields, ["project_id", "share_id", "target_id", "policy_id"])),
)

const backup = publication({
  part: "share-protection.backup",
  event: BackupEvent,
  toDraft: (event, place): Draft | undefined => {
    const { project_id, share_id, target_id, policy_id } = backupState(place)
    const about = {
      backup_id: place.id,
      share_id,
      target_id,
      ...optionalField("policy_id", policy_id),
    }
    switch (event.type) {
      case "BackupRequested":
        return { type: "backup_requested", project_id, data: { ...about, job_id: event.job_id } }
      case "BackupStarted":
        return { type: "backup_started", project_id, data: about }
      case "BackupCompleted":
        return { type: "backup_completed", project_id, data: { ...about, ...snapshotOf(event) } }
      case "BackupFailed":
        return { type: "backup_failed", project_id, data: { ...about, reason: event.reason } }
      case "BackupExpired":
        return { type: "backup_expired", project_id, data: about }
      case "BackupDeleted":
        return { type: "backup_deleted", project_id, data: about }
      case "BackupAdopted":
        return { type: "backup_adopted", project_id, data: { ...about, ...snapshotOf(event) } }
      case "BackupLost":
        return { type: "backup_lost", project_id, data: { ...about, reason: event.reason } }
      case "BackupUndeleted": {
        const data = { ...about, ...optionalField("protected_until", event.protected_until) }
        return { type: "backup_undeleted", project_id, data }
      }
      case "BackupRestoreTested": {
        const { files, bytes } = event
        return { type: "backup_restore_tested", project_id, data: { ...about, files, bytes } }
      }
      case "BackupRestoreTestFailed": {
        const data = { ...about, reason: event.reason }
        return { type: "backup_restore_test_failed", project_id, data }
      }
      case "BackupUndeleteStarted":
      case "BackupUndeleteFailed":
      case "BackupQueued":
      case "BackupRetried":
      case "BackupRestoreStarted":
      case "BackupRestoreFinished":
        return undefined
    }
  },
})

const snapshotOf = (event: Extract<BackupEvent, { readonly engine_snapshot_id: string }>) => ({
  ...Struct.pick(event, ["engine_snapshot_id", "taken_at", "crash_consistent", "partial"]),
  ...Struct.pick(event, ["bytes", "stored_bytes", "files"]),
  ...optionalField("protected_until", event.protected_until),
})

const restoreState = state(
  Schema.Struct(
    Struct.pick(restore_fields, ["project_id", "backup_id", "share_id", "mode", "dry_run"]),
  ),
)

const restore = publication({
  part: "share-protection.restore",
  event: RestoreEvent,
  toDraft: (event, place): Draft | undefined => {
    const { project_id, dry_run, ...restored } = restoreState(place)
    const about = { restore_id: place.id, ...restored, ...(dry_run ? { dry_run } : {}) }
    switch (event.type) {
      case "RestoreRequested":
        return { type: "restore_requested", project_id, data: { ...about, job_id: event.job_id } }
      case "RestoreStarted":
        return { type: "restore_started", project_id, data: about }
      case "RestoreCompleted": {
        const { files, bytes, new_share_id } = event
        const data = { ...about, files, bytes, ...optionalField("new_share_id", new_share_id) }
        return { type: "restore_completed", project_id, data }
      }
      case "RestoreFailed":
        return { type: "restore_failed", project_id, data: { ...about, reason: event.reason } }
      case "RestoreQueued":
      case "RestoreRetried":
        return undefined
    }
  },
})

const jobState = state(
  Schema.Struct(
    Struct.pick(job_fields, [
      "project_id",
      "job_type",
      "resource_type",
      "resource_id",
      "target_id",
    ]),
  ),
)

const job = publication({
  part: "share-protection.job",
  event: JobEvent,
  toDraft: (event, place): Draft | undefined => {
    const { project_id, ...job } = jobState(place)
    const about = { job_id: place.id, ...job }
    const own = of(project_id)
    switch (event.type) {
      case "JobQueued":
        return { type: "job_queued", ...own, data: about }
      case "JobStarted":
        return { type: "job_started", ...own, data: { ...about, worker_id: event.worker_id } }
      case "JobCompleted":
        return { type: "job_completed", ...own, data: about }
      case "JobFailed": {
        const { code, detail, category } = event
        return { type: "job_failed", ...own, data: { ...about, code, detail, category } }
      }
      case "JobCancelled":
        return { type: "job_cancelled", ...own, data: about }
      case "JobRetried": {
        const { attempt, automatic } = event
        return { type: "job_retried", ...own, data: { ...about, attempt, automatic } }
      }
      case "JobAssigned":
      case "JobUnassigned":
      case "JobAdvanced":
      case "JobRecast":
        return undefined
    }
  },
})

const worker = publication({
  part: "share-protection.worker",
  event: WorkerEvent,
  toDraft: (event, { id: worker_id }): Draft | undefined => {
    switch (event.type) {
      case "WorkerRegistered": {
        const fields = Struct.omit(event, ["type", "project_id", "domain_id"])
        const data = { worker_id, ...fields, ...optionalField("domain_id", event.domain_id) }
        return { type: "worker_registered", data }
      }
      case "WorkerBootFailed":
        return { type: "worker_boot_failed", data: { worker_id, reason: event.reason } }
      case "WorkerDrainStarted":
        return { type: "worker_drain_started", data: { worker_id } }
      case "WorkerRetired":
        return { type: "worker_retired", data: { worker_id } }
      case "WorkerDied":
        return { type: "worker_died", data: { worker_id, reason: event.reason } }
      case "WorkerBootStarted":
      case "WorkerJobAssigned":
      case "WorkerJobReleased":
      case "WorkerUndrained":
      case "WorkerRetirementStarted":
        return undefined
    }
  },
})

const rolloutState = state(
  Schema.Struct({ image: CreateRollout.fields.image, replaced_workers: Count }),
)

const rollout = publication({
  part: "share-protection.rollout",
  event: RolloutEvent,
  toDraft: (event, place): Draft | undefined => {
    const { image, replaced_workers } = rolloutState(place)
    const about = { rollout_id: place.id, image }
    switch (event.type) {
      case "RolloutCreated":
        return { type: "rollout_created", data: { ...about, domain_ids: event.domain_ids } }
      case "RolloutSucceeded":
        return { type: "rollout_succeeded", data: { ...about, replaced_workers } }
      case "RolloutHalted": {
        const halted = Struct.omit(event, ["type"])
        const data = { ...about, ...halted, occurred_at: place.commit.at }
        return { type: "worker_image_rollout_failed", data }
      }
      case "ReplacementStarted":
      case "ReplacementCompleted":
      case "RolloutDomainCompleted":
        return undefined
    }
  },
})

const scheduler = publication({
  part: "share-protection.scheduler",
  event: SchedulerEvent,
  toDraft: ({ type }, { commit }): Draft => ({
    type: type === "SchedulerPaused" ? "scheduler_paused" : "scheduler_resumed",
    data: { occurred_at: commit.at },
  }),
})

const reconciliation = publication({
  part: "share-protection.reconciliation",
  event: ReconciliationEvent,
  toDraft: (event): Draft | undefined =>
    event.type === "ReconciliationFinished"
      ? { type: "reconciliation_finished", data: { drift_count: event.drift_count } }
      : undefined,
})

export const published = [
  target,
  policy,
  backup,
  restore,
  job,
  worker,
  rollout,
  scheduler,
  reconciliation,
]
