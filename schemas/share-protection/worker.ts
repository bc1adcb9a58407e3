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

/** Maximum number of concurrent jobs of a worker: their ids are in its snapshot. */
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

const until_registered = "Null until the agent registers."

export const Worker = Schema.Struct({
  id: WorkerId,
  hostname: Schema.NullOr(Name).annotateKey({ description: `Host name. ${until_registered}` }),
  state: WorkerState.annotateKey({
    description:
      "`booting` until the agent registers, then `ready`. `draining` workers get no new jobs, " +
      "`retiring` ones finish their last jobs, `retired` ones are deleted. `dead` if the " +
      "heartbeats stopped or the boot failed.",
  }),
  project_id: ProjectId.annotateKey({ description: "Project in which the worker runs." }),
  domain_id: Schema.NullOr(DomainId).annotateKey({
    description: "Domain that the worker serves. Null for the default domain.",
  }),
  image_version: Schema.NullOr(Name).annotateKey({
    description: "Name of the worker's image. Null if unknown.",
  }),
  engine_version: Schema.NullOr(Name).annotateKey({
    description: `Version of the backup engine. ${until_registered}`,
  }),
  capacity_slots: Schema.NullOr(CapacitySlots).annotateKey({
    description: `Maximum number of concurrent jobs. ${until_registered}`,
  }),
  running_jobs: Count.annotateKey({ description: "Number of jobs assigned to the worker." }),
  heartbeat_at: Schema.NullOr(Instant).annotateKey({
    description: "Time of the last heartbeat. Null if this server has received none.",
  }),
  created_at: Instant.annotateKey({ description: "Time at which the worker was requested." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change of state." }),
}).annotate({ identifier: "Worker", description: "A machine whose agent runs jobs." })
export type Worker = typeof Worker.Type

const place = { project_id: ProjectId, domain_id: Schema.NullOr(DomainId) }

/** An agent's report about itself. */
export const registration = {
  ...place,
  hostname: Name,
  image_version: Name,
  engine_version: Name,
  capacity_slots: CapacitySlots,
}

/** The job in a slot, and the fence of its hold on the repository. */
const slot = { job_id: JobId, fence: Count }

/** A machine is requested; its agent has not registered yet. */
export const BootWorker = message("BootWorker", { ...place, image: Name })
/** The worker did not boot in time, or there was no capacity. */
export const FailWorkerBoot = message("FailWorkerBoot", { reason: Reason })
/** Its agent is running. Repeating it unchanged has no effect. */
export const RegisterWorker = message("RegisterWorker", registration)
/** Rejected unless the worker is ready and has a free slot. */
export const AssignWorkerJob = message("AssignWorkerJob", slot)
/** No effect if the worker does not hold that job with that fence. */
export const ReleaseWorkerJob = message("ReleaseWorkerJob", slot)
/** The worker accepts no new jobs from now on. */
export const DrainWorker = message("DrainWorker", {})
/** A rollout cancels the drain. */
export const UndrainWorker = message("UndrainWorker", {})
/** Rejected unless the worker is draining. */
export const RetireWorker = message("RetireWorker", {})
/** Its last job ended, so its machine can be destroyed. */
export const ConfirmRetirement = message("ConfirmRetirement", {})
/** It sent no heartbeat within the deadline, or its machine is gone. Final. */
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
