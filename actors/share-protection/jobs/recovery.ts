/**
 * Recovery: ends jobs that their workers cannot finish, and jobs that no worker will ever start.
 *
 * A silent worker is declared dead, but is proven dead only one heartbeat deadline later: by then
 * its agent, which stops itself when its heartbeats get no response, no longer runs anything. Only
 * then are its holds broken, so that no repository ever has two writers.
 *
 * Source: document 2 §3 Job, §7 svc.repository_locked; DECISIONS, document 2, cancel, engine.
 */
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import type { Batch, Caused, Due } from "#actors/process.ts"
import type { DispatchView, OpenJob } from "#actors/share-protection/dispatch/view.ts"
import { Job } from "#actors/share-protection/job.ts"
import { isHeld } from "#actors/share-protection/jobs/job-order.ts"
import {
  abandonJob,
  breakHold,
  failLostJob,
  type Hold,
  type JobFailure,
  settleJob,
  unassignJob,
} from "#actors/share-protection/jobs/transitions.ts"
import type { Agents } from "#actors/share-protection/ports/agents.ts"
import type { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import type { Log } from "#events/log.ts"
import type { JobId, TargetId, WorkerId } from "#schemas/share-protection/id.ts"
import { type JobState, RecastJob, RejectJob, UnassignJob } from "#schemas/share-protection/job.ts"

export interface RecoveryOptions {
  readonly queued_job_deadline_seconds: number
  readonly command_timeout_seconds: number
  readonly max_command_duration_seconds: number
  readonly worker_heartbeat_deadline_seconds: number
}

/** The interval between recasts of a queued job doubles up to 2^8 times the first one. */
const recast_doublings_max = 8

/** A worker that accepted an order gets this multiple of the command timeout to start. */
const start_timeout_factor = 2

/**
 * Heartbeats per deadline, and the number of consecutive ones that must omit a job before it counts
 * as lost.
 */
const heartbeats_per_deadline = 3
const missed_heartbeats_min = 2

/** Steps in which the engine may have written; a late worker is rejected on entering the first. */
const writing_steps = new Set<JobState>(["transferring", "finalizing", "releasing"])

const wroteNothing = ({ job_type, state }: OpenJob) =>
  job_type !== "backup" || !writing_steps.has(state)

const operatorFailure = (job: OpenJob, code: JobFailure["code"], detail: string): JobFailure => ({
  code,
  detail,
  category: "operator_action_required",
  wrote_nothing: wroteNothing(job),
})

const workerDied = (job: OpenJob, worker_id: WorkerId) =>
  operatorFailure(job, "svc.worker_unavailable", `Worker ${worker_id} died while running the job.`)

const jobForgotten = (job: OpenJob, worker_id: WorkerId) => {
  const detail = `Worker ${worker_id} no longer runs the job: its agent restarted.`
  return operatorFailure(job, "svc.worker_unavailable", detail)
}

const jobTimedOut = (job: OpenJob, seconds: number) =>
  operatorFailure(job, "svc.engine_error", `The job took longer than ${seconds} s.`)

const target_gone: JobFailure = {
  code: "svc.not_found",
  detail: "The target no longer exists.",
  category: "tenant_action_required",
  wrote_nothing: true,
}

/** When the worker no longer runs anything, as epoch milliseconds; Infinity while it is alive. */
const provenDeadAt = (
  { workers }: DispatchView,
  worker_id: WorkerId,
  { worker_heartbeat_deadline_seconds }: RecoveryOptions,
) => {
  const worker = workers.get(worker_id)
  if (worker?.state !== "dead") return Infinity
  return worker.since + worker_heartbeat_deadline_seconds * 1000
}

/** Jobs of dead workers: fails those that had started, and unassigns the others. */
export const deadWorkerJobs = (view: DispatchView, options: RecoveryOptions, now: number): Due => {
  const lost: Array<Caused> = []
  let next = Infinity
  for (const job of view.jobs.values()) {
    const { hold, job_id, started } = job
    const worker = hold === null ? undefined : view.workers.get(hold.worker_id)
    if (hold === null || worker?.state !== "dead") continue
    const cause = String(worker.position)
    if (!started) {
      // The log would reject the start of its agent.
      const batch: Batch = [
        address(Job, job_id, UnassignJob.make(hold)),
        ...breakHold(job, hold, `Worker ${hold.worker_id} died.`),
      ]
      lost.push({ command_id: `unassign-dead-${job_id}-${hold.fence}`, cause, batch })
      continue
    }
    const at = provenDeadAt(view, hold.worker_id, options)
    const batch = failLostJob(job, hold, workerDied(job, hold.worker_id))
    if (at <= now) lost.push({ command_id: `bury-${job_id}-${hold.fence}`, cause, batch })
    else next = Math.min(next, at)
  }
  return { now: lost, next }
}

/** A hold of a job that has ended or is already in another attempt. */
interface Remnant {
  readonly job: { readonly job_id: JobId; readonly target_id: TargetId }
  readonly hold: Hold
}

const remnants = ({ leases, jobs }: DispatchView): ReadonlyArray<Remnant> => {
  const found: Array<Remnant> = []
  for (const [target_id, { holds }] of leases) {
    for (const { job_id, worker_id, fence } of holds) {
      const present = jobs.get(job_id)?.hold
      if (present?.fence === fence && present.worker_id === worker_id) continue
      found.push({ job: { job_id, target_id }, hold: { worker_id, fence } })
    }
  }
  return found
}

/** Stops jobs that have ended for their tenants, and only then frees their slots and leases. */
export const stopRemnants = (
  view: DispatchView,
  log: Log["Service"],
  agents: Agents["Service"],
  options: RecoveryOptions,
  now: number,
): Due => {
  const retry_ms = options.command_timeout_seconds * 1000
  const round = Math.floor(now / retry_ms)
  const items: Array<Caused> = []
  let next = Infinity
  for (const { job, hold } of remnants(view)) {
    const { worker_id, fence } = hold
    const at = provenDeadAt(view, worker_id, options)
    if (at === Infinity) {
      const command_id = `stop-${job.job_id}-${fence}-${round}`
      items.push({ command_id, batch: stop(log, agents, { job, hold }) })
      next = Math.min(next, (round + 1) * retry_ms)
    } else if (at <= now) {
      const batch = breakHold(job, hold, `Worker ${worker_id} died.`)
      items.push({ command_id: `break-${job.job_id}-${fence}`, batch })
    } else next = Math.min(next, at)
  }
  return { now: items, next }
}

const stop = (
  log: Log["Service"],
  { cancel }: Agents["Service"],
  { job, hold }: Remnant,
): Exclude<Caused["batch"], Batch> =>
  Effect.flatMap(isHeld(log, job.job_id, hold), (is_held) => {
    // Agents obey at once, so a job that had only ended in an outdated view must not be stopped.
    if (is_held) return Effect.succeed([])
    return cancel(hold.worker_id, job.job_id, hold.fence).pipe(
      // An agent that runs the job settles it when its engine has stopped.
      Effect.map((is_running) => (is_running ? [] : settleJob(job, hold))),
      Effect.catch(() => Effect.succeed([])),
    )
  })

/** Jobs of deleted targets; only the target's own jobs can outlive it. */
export const orphanedJobs = (view: DispatchView): ReadonlyArray<Caused> => {
  const found: Array<Caused> = []
  for (const { job_id, attempt, position, hold, target_id } of view.jobs.values()) {
    if (hold !== null || view.targets.get(target_id)?.status !== "deleted") continue
    found.push({
      command_id: `orphan-${job_id}-${attempt}`,
      cause: String(position),
      batch: [address(Job, job_id, RejectJob.make(target_gone))],
    })
  }
  return found
}

/** The timeout of a job that makes no progress; `at` is epoch milliseconds. */
export const deadlineOf = (job: OpenJob, options: RecoveryOptions) => {
  const { job_id, hold, since, recasts, attempt } = job
  const cause = String(job.position)
  if (hold !== null && job.started) {
    const seconds = options.max_command_duration_seconds
    const batch = abandonJob(job, hold, jobTimedOut(job, seconds))
    const item: Caused = { command_id: `abandon-${job_id}-${hold.fence}`, cause, batch }
    return { at: since + seconds * 1000, item }
  }
  if (hold !== null) {
    const at = since + options.command_timeout_seconds * 1000 * start_timeout_factor
    const batch = unassignJob(job, hold)
    const item: Caused = { command_id: `unassign-${job_id}-${hold.fence}`, cause, batch }
    return { at, item }
  }
  const doublings = Math.min(recasts, recast_doublings_max)
  const item: Caused = {
    command_id: `recast-${job_id}-${attempt}-${recasts}`,
    cause,
    batch: [address(Job, job_id, RecastJob.make({}))],
  }
  return { at: since + options.queued_job_deadline_seconds * 1000 * 2 ** doublings, item }
}

/**
 * Jobs that the heartbeats of a live worker no longer list, as after a restart of its agent.
 *
 * A heartbeat may predate the start of a job, and the end of a job may be read here late. So only
 * several consecutive heartbeats count, all received after the start, and the job itself rejects
 * late commands. Times are epoch milliseconds of this process's clock.
 */
export const forgottenJobs = (
  { find }: LiveWorkers["Service"],
  { worker_heartbeat_deadline_seconds }: RecoveryOptions,
) => {
  const missed_ms_max =
    (worker_heartbeat_deadline_seconds * 1000 * missed_heartbeats_min) / heartbeats_per_deadline
  /** When the first heartbeat without the job was received, by the job's hold. */
  const missed = new Map<JobId, { readonly hold: Hold; readonly first: number }>()

  return ({ jobs, workers }: DispatchView, now: number): Due => {
    const lost: Array<Caused> = []
    let next = Infinity
    for (const job_id of missed.keys()) if (!jobs.has(job_id)) missed.delete(job_id)
    for (const job of jobs.values()) {
      const { hold, job_id, started } = job
      if (hold === null || !started || workers.get(hold.worker_id)?.state === "dead") continue
      const live = find(hold.worker_id)
      next = Math.min(next, now + missed_ms_max / missed_heartbeats_min)
      if (live === undefined || live.jobs.some((progress) => progress.job_id === job_id)) {
        missed.delete(job_id)
        continue
      }
      const known = missed.get(job_id)
      const first = known?.hold.fence === hold.fence ? known.first : Math.max(now, live.received_at)
      missed.set(job_id, { hold, first })
      if (live.received_at - first <= missed_ms_max) continue
      const cause = String(job.position)
      const batch = abandonJob(job, hold, jobForgotten(job, hold.worker_id))
      lost.push({ command_id: `forgotten-${job_id}-${hold.fence}`, cause, batch })
    }
    return { now: lost, next }
  }
}
