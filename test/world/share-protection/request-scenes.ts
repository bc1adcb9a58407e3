/**
 * Requests over the real command host and the in-memory log: prior state, request and written
 * events.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  type Batch,
  createTarget,
  queueTargetJob,
  requestBackup,
} from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { TargetTemplate } from "#actors/share-protection/target-template.ts"
import { Log } from "#events/log.ts"
import { CompleteBackup, FailBackup, StartBackup } from "#schemas/share-protection/backup.ts"
import type { JobId } from "#schemas/share-protection/id.ts"
import { FinishShareBackup } from "#schemas/share-protection/policy.ts"
import {
  CompleteEnrollment,
  FailEnrollment,
  StartFormatUpgrade,
} from "#schemas/share-protection/target.ts"
import { CreateTargetTemplate } from "#schemas/share-protection/target-template.ts"
import { deployment, refused, send } from "./deployment.ts"
import {
  backup,
  backup_id,
  domain_id,
  enrolled,
  job_id,
  jobId,
  project_id,
  share_id,
  snapshot,
  target,
  target_id,
  template,
  template_id,
} from "./samples.ts"

/** A project's limit for each kind of resource. */
export const limit = 2

export const not_found = "svc.not_found"
export const conflict = "svc.conflict"
export const full = "svc.quota_exceeded"
export const locked = "svc.repository_locked"

/** The streams, without the service name. */
export const ledger = `ledger.${project_id}`
export const targets = `target.${target_id}`
export const templates = `target-template.${template_id}`
export const leases = `lease.${target_id}`
export const policies = `policy.${share_id}`
export const backups = `backup.${backup_id}`
export const jobs = (id: JobId) => `job.${id}`

/** The writes of a batch: each stream with its event types, in log order. */
const written = Effect.fnUntraced(function* (batch: Batch) {
  const log = yield* Log
  const before = yield* log.head("")
  yield* send(batch)
  const commits = yield* Stream.runCollect(log.read("", before))
  return commits.map(({ stream, commit: { events } }) =>
    [stream.replace("share-protection.", ""), ...events.map(({ type }) => type)].join(" "),
  )
})

/** After the prior batches, the batch writes these events, or is rejected with this code. */
export const scene = (
  name: string,
  before: ReadonlyArray<Batch>,
  batch: Batch,
  then: string | ReadonlyArray<string>,
) =>
  it.effect(name, () =>
    Effect.gen(function* () {
      yield* Effect.forEach(before, send)
      // `refused` asserts that a rejected batch writes nothing.
      const came = typeof then === "string" ? yield* refused(batch) : yield* written(batch)
      assert.deepEqual(came, then)
    }).pipe(Effect.provide(deployment)),
  )

/** Another job has this id. */
export const taken = (id: JobId): Batch => [
  queueTargetJob(id, "maintenance", target_id, project_id),
]

export const create = createTarget(target_id, target, limit)
export const enroll = [address(Target, target_id, CompleteEnrollment.make({ job_id, ...enrolled }))]
export const failEnrollment = [
  address(Target, target_id, FailEnrollment.make({ job_id, reason: "object_lock" })),
]
export const upgrade = [address(Target, target_id, StartFormatUpgrade.make({ job_id: jobId(9) }))]

export const createTemplate = [
  address(TargetTemplate, template_id, CreateTargetTemplate.make(template)),
]
/** Targets that derive from the template: one of a project, and one shared by all. */
export const bucket = { ...target, template_id, domain_id }
export const shared_bucket = { ...bucket, project_id: null }

/** The request for a backup without a policy. */
export const requestedBackup = {
  backup_id,
  job_id: jobId(2),
  project_id,
  share_id,
  target_id,
  policy_id: null,
  crash_consistent_wanted: backup.crash_consistent_wanted,
  tick: null,
  max_retries: 0,
}

export const request = requestBackup(requestedBackup, limit)

const start = address(Backup, backup_id, StartBackup.make({}))
const finish = address(Policy, share_id, FinishShareBackup.make({ backup_id }))

/** An enrolled target with a backup that is completed, or failed. */
export const made = (more: { protected_until?: string } = {}) => [
  create,
  enroll,
  request,
  [start],
  [address(Backup, backup_id, CompleteBackup.make({ ...snapshot, ...more })), finish],
]
export const failed = [
  create,
  enroll,
  request,
  [start],
  [address(Backup, backup_id, FailBackup.make({ reason: "The engine exited with 1." })), finish],
]
