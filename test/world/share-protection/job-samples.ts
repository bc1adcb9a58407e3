/** Sample events and commands for tests of jobs, and of the aggregates that hold them. */
import {
  JobAdvanced,
  JobAssigned,
  type JobEvent,
  JobFailed,
  JobQueued,
  JobStarted,
} from "#events/share-protection/job.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { type JobStep, job_steps } from "#schemas/share-protection/job.ts"
import { backup_id, project_id, share_id, target_id } from "./samples.ts"

export const worker_id = WorkerId.make("worker-1")
export const other_worker_id = WorkerId.make("worker-2")
export const hold = { worker_id, fence: 1 }
export const other_hold = { worker_id: other_worker_id, fence: 2 }

export const about = {
  job_type: "backup",
  resource_type: "backup",
  resource_id: backup_id,
  project_id,
  target_id,
  share_id,
  backup_id,
  max_retries: 2,
  forget: [],
} as const

export const failure = {
  code: "svc.engine_error",
  detail: "The engine exited with 1.",
  category: "operator_action_required",
  wrote_nothing: true,
} as const

export const queued = JobQueued.make(about)
export const assigned = JobAssigned.make(hold)
export const started = JobStarted.make(hold)
export const advanced = (to: JobStep) => JobAdvanced.make({ ...hold, to })
export const failed = JobFailed.make({ ...failure, ...hold })
export const rejected = JobFailed.make({ ...failure, worker_id: null, fence: null })

/** From its creation to this step. */
export const until = (step: JobStep): ReadonlyArray<JobEvent> => [
  queued,
  assigned,
  started,
  ...job_steps.slice(1, job_steps.indexOf(step) + 1).map(advanced),
]
