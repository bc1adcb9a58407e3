/**
 * Dispatch: assigns queued jobs to workers and recovers jobs that they cannot finish.
 *
 * One batch assigns a job, a slot of the worker and a hold of the repository's lease. Each command
 * id names the commits that the plan is based on. A command based on an outdated view is rejected,
 * and planned again after the newer commits are read.
 *
 * Source: document 2 §3 Job, §8; DECISIONS, document 2, cancel, backup create.
 */
import { Clock, Effect } from "effect"
import { Agenda } from "#actors/agenda.ts"
import { type Caused, type Due, mergeDue, type Process } from "#actors/process.ts"
import {
  freeSlots,
  isReady,
  leastLoaded,
  startable,
} from "#actors/share-protection/dispatch/plan.ts"
import {
  type DispatchView,
  emptyView,
  foldDispatch,
  type OpenJob,
} from "#actors/share-protection/dispatch/view.ts"
import { assignment, jobOrder } from "#actors/share-protection/jobs/job-order.ts"
import {
  deadlineOf,
  deadWorkerJobs,
  forgottenJobs,
  orphanedJobs,
  type RecoveryOptions,
  stopRemnants,
} from "#actors/share-protection/jobs/recovery.ts"
import {
  admitJob,
  type Hold,
  type JobFailure,
  rejectJob,
  unassignJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import {
  makeBackoffs,
  type WorkerBackoffs,
} from "#actors/share-protection/processes/worker-backoff.ts"
import { enrolledPlaces, formerPasswords, isTaken } from "#actors/share-protection/target-bucket.ts"
import { Log } from "#events/log.ts"
import { former_passwords_max } from "#schemas/share-protection/job-order.ts"

export interface DispatchOptions extends RecoveryOptions {
  readonly worker_boot_max_failures: number
  readonly worker_boot_failure_window_seconds: number
}

const no_worker: JobFailure = {
  code: "svc.worker_unavailable",
  detail: "No worker is available: too many workers failed to boot.",
  category: "operator_action_required",
  wrote_nothing: true,
}

/** Backups and restores whose target is enrolled. */
const admissions = (view: DispatchView): ReadonlyArray<Caused> => {
  const ready: Array<Caused> = []
  for (const job_id of view.unadmitted.values()) {
    const job = view.jobs.get(job_id)
    if (job === undefined || !isReady(view, job)) continue
    ready.push({
      command_id: `admit-${job_id}`,
      cause: String(job.position),
      batch: admitJob(job),
    })
  }
  return ready
}

/** Assigns each job that can start to the worker with the most free slots. */
const assignments = (
  view: DispatchView,
  log: Log["Service"],
  backoffs: WorkerBackoffs,
  now: number,
): ReadonlyArray<Caused> => {
  const slots = freeSlots(view).filter(({ worker_id }) => !backoffs.isResting(worker_id, now))
  const planned: Array<Caused> = []
  for (const job of slots.length > 0 ? startable(view) : []) {
    const slot = leastLoaded(slots)
    if (slot === undefined) break
    slot.free--
    const { worker_id, position } = slot
    const lease = view.leases.get(job.target_id)
    const fence = (lease?.fence ?? 0) + 1
    const rests_on = `${job.position}-${position}-${lease?.position ?? 0}`
    planned.push({
      command_id: `assign-${job.job_id}-${worker_id}-${fence}-${rests_on}`,
      cause: String(job.position),
      batch: assignment(log, job, { worker_id, fence }),
    })
  }
  return planned
}

/** Orders for jobs that are assigned to a worker but not started. */
const offers = (
  view: DispatchView,
  log: Log["Service"],
  agents: Agents["Service"],
  backoffs: WorkerBackoffs,
): ReadonlyArray<Caused> => {
  const open: Array<Caused> = []
  for (const job of view.jobs.values()) {
    const { hold, job_id } = job
    if (hold === null || job.started) continue
    if (view.workers.get(hold.worker_id)?.state === "dead") continue
    open.push({
      command_id: `offer-${job_id}-${hold.fence}`,
      cause: String(job.position),
      batch: Effect.map(offerJob(view, log, agents, backoffs, job, hold), (is_taken) =>
        // The worker did not accept it: another worker may.
        is_taken ? [] : unassignJob(job, hold),
      ),
    })
  }
  return open
}

/**
 * The facts of an enrollment about targets that share or shared its bucket; undefined if the target
 * was moved to a bucket in which another target is being enrolled.
 */
const enrollmentOf = (view: DispatchView, { job_type, target_id }: OpenJob) => {
  if (job_type !== "target_enroll") return {}
  const [place = ""] = view.targets.get(target_id)?.places ?? []
  if (enrolledPlaces(view, target_id).has(place)) return undefined
  const former_password_refs = formerPasswords(view, target_id, former_passwords_max)
  return { former_password_refs, is_taken: isTaken(view, target_id) }
}

/** Offers the job to its worker and returns whether the worker accepted it. */
const offerJob = Effect.fnUntraced(function* (
  view: DispatchView,
  log: Log["Service"],
  { offer }: Agents["Service"],
  backoffs: WorkerBackoffs,
  job: OpenJob,
  hold: Hold,
) {
  const { worker_id } = hold
  const enrollment = enrollmentOf(view, job)
  const order = enrollment && (yield* jobOrder(log, job, hold, enrollment))
  if (order === undefined) return false
  const response = yield* Effect.result(offer(worker_id, order))
  if (response._tag === "Success") backoffs.taken(worker_id)
  else backoffs.refused(worker_id, yield* Clock.currentTimeMillis)
  return response._tag === "Success"
})

/** Rejects waiting jobs when boot failures have stopped the fleet and no worker is left. */
const rejections = (
  view: DispatchView,
  options: DispatchOptions,
  now: number,
): ReadonlyArray<Caused> => {
  const window_ms = options.worker_boot_failure_window_seconds * 1000
  const recent = (view.fleet?.failures ?? []).filter((at) => Date.parse(at) > now - window_ms)
  const is_stopped =
    options.worker_boot_max_failures > 0 && recent.length >= options.worker_boot_max_failures
  const has_workers = [...view.workers.values()].some(
    ({ state }) => state === "ready" || state === "booting",
  )
  if (!is_stopped || has_workers) return []
  return [...view.jobs.values()]
    .filter((job) => job.hold === null && isReady(view, job))
    .map((job) => ({
      command_id: `no-worker-${job.job_id}-${job.attempt}`,
      cause: String(job.position),
      batch: rejectJob(job, no_worker),
    }))
}

/** Runs on a single conductor. */
export const dispatch = (options: DispatchOptions) =>
  Effect.map(
    Effect.all([Agents, LiveWorkers]),
    ([agents, live]): Process => ({
      name: "share-protection-dispatch",
      part: "share-protection",
      from: "lasts",
      start: Effect.gen(function* () {
        const log = yield* Log
        const view = emptyView()
        const backoffs = makeBackoffs()
        const forgotten = forgottenJobs(live, options)
        const agenda = Agenda.make<Caused>()
        return {
          fold: Effect.fnUntraced(function* (recorded) {
            const changed = yield* foldDispatch(log, view, recorded)
            if (changed === undefined) return
            const { job_id, open } = changed
            agenda.set(job_id, open === undefined ? [] : [deadlineOf(open, options)])
          }),
          due: (now): Due => {
            const starting = [
              ...admissions(view),
              ...assignments(view, log, backoffs, now),
              ...offers(view, log, agents, backoffs),
              ...rejections(view, options, now),
            ]
            return mergeDue(
              deadWorkerJobs(view, options, now),
              forgotten(view, now),
              stopRemnants(view, log, agents, options, now),
              { now: [...orphanedJobs(view), ...starting], next: backoffs.nextEnd(now) },
              agenda.due(now),
            )
          },
        }
      }),
    }),
  )
