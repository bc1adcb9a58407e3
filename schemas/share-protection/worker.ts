/**
 * A worker: a machine whose agent runs jobs.
 *
 * Source: document 2 §2 Worker, §3 Worker, §8 worker.capacity_slots; DECISIONS, document 2, worker.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { DomainId, JobId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { Count, Name, Reason } from "#schemas/share-protection/text.ts"

/** Jobs of one worker at the same time: their ids are in its snapshot. */
export const capacity_slots_max = 128

export const CapacitySlots = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: capacity_slots_max }),
)

export const WorkerState = Schema.Literals([
  "booting",
  "ready",
  "draining",
  "retiring",
  "retired",
  "dead",
])
export type WorkerState = typeof WorkerState.Type

export const Worker = Schema.Struct({
  id: WorkerId,
  hostname: Schema.NullOr(Name),
  state: WorkerState,
  project_id: ProjectId,
  domain_id: Schema.NullOr(DomainId),
  image_version: Schema.NullOr(Name),
  engine_version: Schema.NullOr(Name),
  capacity_slots: Schema.NullOr(CapacitySlots),
  running_jobs: Schema.Int,
  heartbeat_at: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
})
export type Worker = typeof Worker.Type

const place = { project_id: ProjectId, domain_id: Schema.NullOr(DomainId) }

/** What an agent tells of itself. */
export const registration = {
  ...place,
  hostname: Name,
  image_version: Name,
  engine_version: Name,
  capacity_slots: CapacitySlots,
}

/** A job in one of its slots, and the fence of the job's hold on the repository. */
const slot = { job_id: JobId, fence: Count }

/** A machine is asked for; its agent has yet to register. */
export const BootWorker = message("BootWorker", { ...place, image: Name })
/** It did not come up in time, or could not be had. */
export const FailWorkerBoot = message("FailWorkerBoot", { reason: Reason })
/** Its agent is up. Again with the same words: no change. */
export const RegisterWorker = message("RegisterWorker", registration)
/** Refused unless it is ready and has a free slot. */
export const AssignWorkerJob = message("AssignWorkerJob", slot)
/** Without effect when the worker does not have that job by that fence. */
export const ReleaseWorkerJob = message("ReleaseWorkerJob", slot)
/** From here it takes no new job. */
export const DrainWorker = message("DrainWorker", {})
/** A rollout takes its drain back. */
export const UndrainWorker = message("UndrainWorker", {})
/** Refused unless it is draining. */
export const RetireWorker = message("RetireWorker", {})
/** Its last job ended: its machine can go. */
export const ConfirmRetirement = message("ConfirmRetirement", {})
/** Nothing was heard of it for the deadline, or its machine is gone. It never comes back. */
export const MarkWorkerDead = message("MarkWorkerDead", { reason: Reason })

export const WorkerCommand = Schema.Union([
  BootWorker,
  FailWorkerBoot,
  RegisterWorker,
  AssignWorkerJob,
  ReleaseWorkerJob,
  DrainWorker,
  UndrainWorker,
  RetireWorker,
  ConfirmRetirement,
  MarkWorkerDead,
])
export type WorkerCommand = typeof WorkerCommand.Type
