/** Activity outside the API: agents that run jobs, workers that register and stop. */
import { Effect } from "effect"
import { type Addressed, address, Commands } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  admitJob,
  assignJob,
  completeJob,
  failJob,
  type JobFacts,
  type JobFailure,
  type JobResult,
  startJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findJob } from "#projections/share-protection/job.ts"
import { DomainId, JobId, ProjectId, ShareId, WorkerId } from "#schemas/share-protection/id.ts"
import { AdvanceJob, job_steps } from "#schemas/share-protection/job.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"
import { secretRef, snapshot, uuid } from "../samples.ts"
import { capabilities, domain_id } from "./ports.ts"

let sent = 0

/** Sends commands as a process does, and waits until they are visible. */
export const tell = Effect.fnUntraced(function* (...batch: ReadonlyArray<Addressed<unknown>>) {
  const { send } = yield* Commands
  sent += 1
  const origin = { command_id: `sent-${sent}`, actor: "test", at: "2026-11-21T00:00:00.000Z" }
  const position = yield* Effect.orDie(send(origin, ...batch))
  const { waitFor } = yield* ShareProtectionModel
  yield* Effect.orDie(waitFor(position))
})

export const worker_id = WorkerId.make(uuid(31))
export const other_worker_id = WorkerId.make(uuid(32))

/** A worker that accepts jobs. */
export const register = (id: WorkerId = worker_id, image_version = "worker-1") =>
  tell(
    address(
      Worker,
      id,
      RegisterWorker.make({
        project_id: ProjectId.make("project-workers"),
        domain_id: DomainId.make(domain_id),
        hostname: "host",
        image_version,
        engine_version: "0.18.0",
        capacity_slots: 8,
      }),
    ),
  )

/** The facts about a job that its batches need. */
export const factsOf = Effect.fnUntraced(function* (job_id: string) {
  const { db } = yield* ShareProtectionModel
  const row = yield* findJob(db, JobId.make(job_id))
  if (row === undefined) throw new Error(`There is no job ${job_id}.`)
  const facts: JobFacts = { job_id: row.id, ...row, hold: null }
  return facts
})

/**
 * Assigns the job to the worker and enters its first step. `fence` is the target's number of holds
 * so far.
 */
export const begin = Effect.fnUntraced(function* (job_id: string, fence: number) {
  const facts = yield* factsOf(job_id)
  const hold = { worker_id, fence }
  const admitted = admitJob(facts)
  if (admitted.length > 0) yield* tell(...admitted)
  yield* tell(...assignJob(facts, hold))
  yield* tell(...startJob(facts, hold))
  return { facts, hold }
})

const results = {
  target_enroll: {
    job_type: "target_enroll",
    made: {
      repository_password_ref: secretRef(3),
      capabilities,
      format: 1,
      engine_profile: "restic",
    },
  },
  backup: { job_type: "backup", made: snapshot },
  restore: {
    job_type: "restore",
    made: { new_share_id: ShareId.make(uuid(41)), files: 10, bytes: 1000, plan: null },
  },
  repo_format_upgrade: { job_type: "repo_format_upgrade", made: { to_format: 2 } },
  retention: { job_type: "retention" },
  maintenance: { job_type: "maintenance", made: { protected_until: null } },
  undelete: { job_type: "undelete", made: { protected_until: null } },
  restore_test: { job_type: "restore_test", made: { files: 1, bytes: 2 } },
} satisfies Readonly<Record<JobFacts["job_type"], JobResult>>

/** Runs the job to a successful end. */
export const run = Effect.fnUntraced(function* (job_id: string, fence: number, made: object = {}) {
  const { facts, hold } = yield* begin(job_id, fence)
  for (const to of job_steps.slice(1)) {
    yield* tell(address(Job, facts.job_id, AdvanceJob.make({ ...hold, to })))
  }
  const result: JobResult = results[facts.job_type]
  const expected = "made" in result ? { ...result, made: { ...result.made, ...made } } : result
  // `made` overrides existing fields.
  yield* tell(...completeJob(facts, hold, expected as JobResult))
})

export const engine_failure: JobFailure = {
  code: "svc.engine_error",
  detail: "The engine exited with 1.",
  category: "operator_action_required",
  wrote_nothing: true,
}

/** Runs the job to a failed end. */
export const fail = Effect.fnUntraced(function* (job_id: string, fence: number) {
  const { facts, hold } = yield* begin(job_id, fence)
  yield* tell(...failJob(facts, hold, engine_failure))
})
