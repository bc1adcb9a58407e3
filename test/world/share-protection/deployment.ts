/** An in-memory deployment: the real command host on the in-memory log, and its current state. */
import { randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Backup, backupAfter } from "#actors/share-protection/backup.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import {
  admitJob,
  assignJob,
  completeJob,
  type Hold,
  type JobFacts,
  type JobResult,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Lease, leaseAfter } from "#actors/share-protection/lease.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import {
  type Batch,
  createTarget,
  requestBackup,
  requestRestore,
} from "#actors/share-protection/requests.ts"
import { Restore, restoreAfter } from "#actors/share-protection/restore.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import { Worker, workerAfter } from "#actors/share-protection/worker.ts"
import { Log, type LogUnavailable, type Recorded } from "#events/log.ts"
import { logMemory } from "#journal"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { AdvanceJob, type JobStep, job_steps } from "#schemas/share-protection/job.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"
import { other_worker_id, worker_id } from "./job-samples.ts"
import {
  at,
  backup,
  backup_id,
  domain_id,
  enrolled,
  jobId,
  project_id,
  restore,
  restore_id,
  restored,
  share_id,
  snapshot,
  target,
  target_id,
} from "./samples.ts"

export const deployment = Layer.provideMerge(host, logMemory)

/** One test with its own deployment. */
export const scene = (name: string, run: () => Effect.Effect<unknown, unknown, Commands | Log>) =>
  it.effect(name, () => run().pipe(Effect.provide(deployment)))

/** Sends a batch with its own id. */
export const send = (batch: Batch) =>
  Effect.flatMap(Commands, (commands) =>
    commands.send({ command_id: randomUUID(), actor: "test", at }, ...batch),
  )

/** Returns the code with which a batch is rejected; asserts that it wrote nothing to the log. */
export const refused = Effect.fnUntraced(function* (batch: Batch) {
  const log = yield* Log
  const before = yield* log.head("")
  const refusal = yield* Effect.flip(send(batch))
  assert.equal(yield* log.head(""), before)
  return "code" in refusal ? refusal.code : refusal._tag
})

/** Sends a batch that must have no effect. */
export const without_effect = Effect.fnUntraced(function* (batch: Batch) {
  const log = yield* Log
  const before = yield* log.head("")
  yield* send(batch)
  assert.equal(yield* log.head(""), before)
})

const now = Effect.fnUntraced(function* <A>(
  stream: string,
  after: (log: Log["Service"], recorded: Recorded) => Effect.Effect<A, LogUnavailable>,
) {
  const log = yield* Log
  const last = yield* log.load(stream)
  assert.isDefined(last, `${stream} is in the log`)
  return yield* after(log, last)
})

export const jobNow = (job_id: JobId) => now(`${Job.name}.${job_id}`, jobAfter)
export const workerNow = (id: WorkerId = worker_id) => now(`${Worker.name}.${id}`, workerAfter)
export const leaseNow = now(`${Lease.name}.${target_id}`, leaseAfter)
export const targetNow = now(`${Target.name}.${target_id}`, targetAfter)
export const backupNow = now(`${Backup.name}.${backup_id}`, backupAfter)
export const policyNow = now(`${Policy.name}.${share_id}`, policyAfter)
export const restoreNow = now(`${Restore.name}.${restore_id}`, restoreAfter)

/** The facts about a job that its transitions need, as currently in the log. */
export const factsOf = (job_id: JobId) =>
  Effect.map(jobNow(job_id), (job): JobFacts => {
    const { worker_id, fence } = job
    return { ...job, job_id, hold: worker_id && fence ? { worker_id, fence } : null }
  })

/** Asserts that the repository has no hold and that no slot is taken. */
export const assertFree = Effect.gen(function* () {
  assert.deepEqual((yield* leaseNow).holds, [])
  for (const id of [worker_id, other_worker_id]) {
    assert.deepEqual((yield* workerNow(id)).running_jobs, [])
  }
})

/** Asserts that only this job has this slot and this hold. */
export const assertHeld = Effect.fnUntraced(function* (job_id: JobId, { worker_id, fence }: Hold) {
  const { holds } = yield* leaseNow
  assert.deepEqual(
    holds.map(({ mode: _, ...hold }) => hold),
    [{ job_id, worker_id, fence }],
  )
  assert.deepEqual((yield* workerNow(worker_id)).running_jobs, [{ job_id, fence }])
})

const words = {
  project_id,
  domain_id,
  hostname: "host-1",
  image_version: "image-1",
  engine_version: "0.18.0",
  capacity_slots: 2,
}

/** Registers workers with two slots each. */
export const registerWorkers = (...ids: ReadonlyArray<WorkerId>) =>
  send(ids.map((id) => address(Worker, id, RegisterWorker.make(words))))

export const begin = Effect.fnUntraced(function* (job: JobFacts, hold: Hold) {
  yield* send(assignJob(job, hold))
  yield* send(startJob(job, hold))
})

export const toStep = (job_id: JobId, hold: Hold, to: JobStep): Batch => [
  address(Job, job_id, AdvanceJob.make({ ...hold, to })),
]

export const advance = (job_id: JobId, hold: Hold, to: JobStep) => send(toStep(job_id, hold, to))

/** All steps of a worker with a job, up to its successful end. */
export const walk = Effect.fnUntraced(function* (job_id: JobId, hold: Hold, result: JobResult) {
  const job = yield* factsOf(job_id)
  yield* send(admitJob(job))
  yield* begin(job, hold)
  yield* Effect.forEach(job_steps.slice(1), (to) => advance(job_id, hold, to))
  yield* send(completeJob(job, hold, result))
})

export const results = {
  target_enroll: { job_type: "target_enroll", made: enrolled },
  backup: { job_type: "backup", made: { ...snapshot, taken_at: at } },
  restore: { job_type: "restore", made: restored },
  repo_format_upgrade: { job_type: "repo_format_upgrade", made: { to_format: 3 } },
  retention: { job_type: "retention" },
  maintenance: { job_type: "maintenance", made: { protected_until: null } },
  undelete: { job_type: "undelete", made: { protected_until: null } },
  restore_test: { job_type: "restore_test", made: { files: 1, bytes: 2 } },
} as const

const limit = 10

/** Jobs of the scenarios below. */
export const enroll_job_id = target.job_id
export const backup_job_id = jobId(2)
export const restore_job_id = jobId(3)

/** Two workers, and a target whose enrollment is queued. */
export const registered = Effect.gen(function* () {
  yield* registerWorkers(worker_id, other_worker_id)
  yield* send(createTarget(target_id, target, limit))
})

/** Also enrolls the target, with fence 1. */
export const enrolledTarget = Effect.gen(function* () {
  yield* registered
  yield* walk(enroll_job_id, { worker_id, fence: 1 }, results.target_enroll)
})

/** Also requests a backup of its share, without a policy. */
export const requestedBackup = Effect.gen(function* () {
  yield* enrolledTarget
  const about = { ...backup, policy_id: null, job_id: backup_job_id }
  const request = { ...about, backup_id, tick: null, max_retries: 1 }
  yield* send(requestBackup(request, limit))
  return yield* factsOf(backup_job_id)
})

/** Also completes the backup, with fence 2, and requests a restore of it. */
export const requestedRestore = Effect.gen(function* () {
  yield* requestedBackup
  yield* walk(backup_job_id, { worker_id, fence: 2 }, results.backup)
  yield* send(requestRestore(restore_id, { ...restore, job_id: restore_job_id }))
  return yield* factsOf(restore_job_id)
})
