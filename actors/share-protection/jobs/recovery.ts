/**
 * Recovery: takes back what workers cannot finish, and what nobody will ever begin.
 *
 * A worker that fell silent is dead, but proven dead only a heartbeat's deadline later: by then its
 * agent, which stops by itself when nobody answers it, runs nothing any more. What it held is
 * broken then, and not before: so no repository has two writers.
 *
 * Source: document 2 §3 Job, §7 svc.repository_locked; DECISIONS, document 2, cancel, engine.
 */
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import type { Batch, Caused, Due } from "#actors/process.ts"
import type { DispatchView, OpenJob } from "#actors/share-protection/dispatch/view.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  abandonJob,
  breakHold,
  failLostJob,
  type Hold,
  type JobFailure,
  settleJob,
  unassignJob,
} from "#actors/share-protection/jobs/course.ts"
import { isHeld } from "#actors/share-protection/jobs/orders.ts"
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

/** A job is put before the conductor again at ever longer intervals: 2^8 times the first one. */
const recast_doublings_max = 8

/** A worker that took an order has this many times its time to begin. */
const start_patience = 2

/** Heartbeats of a deadline, and how many in a row must leave a job out that is taken for lost. */
const beats_of_deadline = 3
const forgotten_beats = 2

/** Steps in which an engine may have written: whoever is late is refused as it enters the first. */
const writing = new Set<JobState>(["transferring", "finalizing", "releasing"])

const wroteNothing = ({ job_type, state }: OpenJob) => job_type !== "backup" || !writing.has(state)

const broken = (job: OpenJob, code: JobFailure["code"], detail: string): JobFailure => ({
  code,
  detail,
  category: "operator_action_required",
  wrote_nothing: wroteNothing(job),
})

const died = (job: OpenJob, worker_id: WorkerId) =>
  broken(job, "svc.worker_unavailable", `Worker ${worker_id} died while it ran the job.`)

const forgot = (job: OpenJob, worker_id: WorkerId) => {
  const detail = `Worker ${worker_id} runs the job no more: its agent began anew.`
  return broken(job, "svc.worker_unavailable", detail)
}

const tookTooLong = (job: OpenJob, seconds: number) =>
  broken(job, "svc.engine_error", `The job took longer than ${seconds} s.`)

const target_gone: JobFailure = {
  code: "svc.not_found",
  detail: "The target is gone.",
  category: "tenant_action_required",
  wrote_nothing: true,
}

/** From when on nothing of the worker runs, as epoch milliseconds; Infinity while it lives. */
const provenDeadAt = (
  { workers }: DispatchView,
  worker_id: WorkerId,
  { worker_heartbeat_deadline_seconds }: RecoveryOptions,
) => {
  const worker = workers.get(worker_id)
  if (worker?.state !== "dead") return Infinity
  return worker.since + worker_heartbeat_deadline_seconds * 1000
}

/** Jobs of workers that died: what had begun failed, what had not is for another worker. */
export const deadWorkerJobs = (view: DispatchView, options: RecoveryOptions, now: number): Due => {
  const lost: Array<Caused> = []
  let next = Infinity
  for (const job of view.jobs.values()) {
    const { hold, job_id, started } = job
    const worker = hold === null ? undefined : view.workers.get(hold.worker_id)
    if (hold === null || worker?.state !== "dead") continue
    const cause = String(worker.position)
    if (!started) {
      // Its agent would be refused as it begins.
      const batch: Batch = [
        address(Job, job_id, UnassignJob.make(hold)),
        ...breakHold(job, hold, `Worker ${hold.worker_id} died.`),
      ]
      lost.push({ command_id: `unassign-dead-${job_id}-${hold.fence}`, cause, batch })
      continue
    }
    const at = provenDeadAt(view, hold.worker_id, options)
    const batch = failLostJob(job, hold, died(job, hold.worker_id))
    if (at <= now) lost.push({ command_id: `bury-${job_id}-${hold.fence}`, cause, batch })
    else next = Math.min(next, at)
  }
  return { now: lost, next }
}

/** A hold of a job that has ended, or that is in another attempt already. */
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

/** What ended for its tenant is stopped, and only then its slot and its lease are free. */
export const stopRemnants = (
  view: DispatchView,
  log: Log["Service"],
  agents: Agents["Service"],
  options: RecoveryOptions,
  now: number,
): Due => {
  const again_ms = options.command_timeout_seconds * 1000
  const round = Math.floor(now / again_ms)
  const items: Array<Caused> = []
  let next = Infinity
  for (const { job, hold } of remnants(view)) {
    const { worker_id, fence } = hold
    const at = provenDeadAt(view, worker_id, options)
    if (at === Infinity) {
      const command_id = `stop-${job.job_id}-${fence}-${round}`
      items.push({ command_id, batch: stop(log, agents, { job, hold }) })
      next = Math.min(next, (round + 1) * again_ms)
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
    // An agent obeys: what only looked ended on an old view must not be stopped.
    if (is_held) return Effect.succeed([])
    return cancel(hold.worker_id, job.job_id, hold.fence).pipe(
      // What it has it settles itself, when its engine stopped.
      Effect.map((has_it) => (has_it ? [] : settleJob(job, hold))),
      Effect.catch(() => Effect.succeed([])),
    )
  })

/** Jobs of targets that are gone; only jobs of the target itself can have outlived it. */
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

/** What time does to a job that nobody moves; `at` is epoch milliseconds. */
export const deadlineOf = (job: OpenJob, options: RecoveryOptions) => {
  const { job_id, hold, since, recasts, attempt } = job
  const cause = String(job.position)
  if (hold !== null && job.started) {
    const seconds = options.max_command_duration_seconds
    const batch = abandonJob(job, hold, tookTooLong(job, seconds))
    const what: Caused = { command_id: `abandon-${job_id}-${hold.fence}`, cause, batch }
    return { at: since + seconds * 1000, what }
  }
  if (hold !== null) {
    const at = since + options.command_timeout_seconds * 1000 * start_patience
    const batch = unassignJob(job, hold)
    const what: Caused = { command_id: `unassign-${job_id}-${hold.fence}`, cause, batch }
    return { at, what }
  }
  const doublings = Math.min(recasts, recast_doublings_max)
  const what: Caused = {
    command_id: `recast-${job_id}-${attempt}-${recasts}`,
    cause,
    batch: [address(Job, job_id, RecastJob.make({}))],
  }
  return { at: since + options.queued_job_deadline_seconds * 1000 * 2 ** doublings, what }
}

/**
 * Jobs that their workers say nothing of any more, though they are heard: an agent that began anew
 * under its old id knows nothing of what it ran.
 *
 * Heartbeats that left before a job began do not name it, and what has ended may be named by
 * nobody before its end is read here: only several in a row count, all heard after it began. The
 * job itself refuses what comes too late. All times are epoch milliseconds of this process's clock.
 */
export const forgottenJobs = (
  { find }: LiveWorkers["Service"],
  { worker_heartbeat_deadline_seconds }: RecoveryOptions,
) => {
  const patience_ms =
    (worker_heartbeat_deadline_seconds * 1000 * forgotten_beats) / beats_of_deadline
  /** When a heartbeat without the job was heard first, by the job's hold. */
  const missed = new Map<JobId, { readonly hold: Hold; readonly first: number }>()

  return ({ jobs, workers }: DispatchView, now: number): Due => {
    const lost: Array<Caused> = []
    let next = Infinity
    for (const job_id of missed.keys()) if (!jobs.has(job_id)) missed.delete(job_id)
    for (const job of jobs.values()) {
      const { hold, job_id, started } = job
      if (hold === null || !started || workers.get(hold.worker_id)?.state === "dead") continue
      const live = find(hold.worker_id)
      next = Math.min(next, now + patience_ms / forgotten_beats)
      if (live === undefined || live.jobs.some((said) => said.job_id === job_id)) {
        missed.delete(job_id)
        continue
      }
      const known = missed.get(job_id)
      const first = known?.hold.fence === hold.fence ? known.first : Math.max(now, live.received_at)
      missed.set(job_id, { hold, first })
      if (live.received_at - first <= patience_ms) continue
      const cause = String(job.position)
      const batch = abandonJob(job, hold, forgot(job, hold.worker_id))
      lost.push({ command_id: `forgotten-${job_id}-${hold.fence}`, cause, batch })
    }
    return { now: lost, next }
  }
}
