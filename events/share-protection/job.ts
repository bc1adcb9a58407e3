/** Events of a job. Stream: share-protection.job.<id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import { AssignJob, JobStep, job_fields, RejectJob } from "#schemas/share-protection/job.ts"
import { Count } from "#schemas/share-protection/text.ts"

const failure = Struct.omit(RejectJob.fields, ["type"])
const holder = Struct.omit(AssignJob.fields, ["type"])

export const JobQueued = message("JobQueued", job_fields)
/** A worker was asked to start it; it is still queued. */
export const JobAssigned = message("JobAssigned", holder)
/** That worker did not start it. */
export const JobUnassigned = message("JobUnassigned", holder)
/** The worker started it: it is in provisioning_network. */
export const JobStarted = message("JobStarted", holder)
export const JobAdvanced = message("JobAdvanced", { ...holder, to: JobStep })
export const JobCompleted = message("JobCompleted", holder)
/** `worker_id` and `fence` are null if no worker held it. */
export const JobFailed = message("JobFailed", {
  ...failure,
  worker_id: Schema.NullOr(holder.worker_id),
  fence: Schema.NullOr(holder.fence),
})
/**
 * It ends in error; a worker that runs it stops the engine, and only then is the lease released.
 */
export const JobCancelled = message("JobCancelled", {})
/** Queued again; `attempt` counts from 1. */
export const JobRetried = message("JobRetried", {
  attempt: Schema.Int.check(Schema.isGreaterThan(1)),
  automatic: Schema.Boolean,
})
/** It waited too long and returns to the conductor; `count` is the number of times so far. */
export const JobRecast = message("JobRecast", { count: Count })

export const JobEvent = Schema.Union([
  JobQueued,
  JobAssigned,
  JobUnassigned,
  JobStarted,
  JobAdvanced,
  JobCompleted,
  JobFailed,
  JobCancelled,
  JobRetried,
  JobRecast,
]).pipe(Schema.toTaggedUnion("type"))
export type JobEvent = typeof JobEvent.Type
