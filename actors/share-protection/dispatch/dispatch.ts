/**
 * Dispatch: gives queued jobs to workers, and takes back what they cannot finish.
 *
 * A job, its slot on a worker and its hold of the repository's lease are given in one batch, and
 * each command is named after the commits that its plan rests on: what was planned on an old view
 * is refused, and planned again when the news are in.
 *
 * Source: document 2 §3 Job, §8; DECISIONS, document 2, cancel, backup create.
 */
import { Clock, Effect } from "effect"
import { Agenda } from "#actors/agenda.ts"
import { type Caused, type Due, joined, type Process } from "#actors/process.ts"
import { freeSlots, isReady, leastLoaded, startable } from "#actors/share-protection/dispatch/plan.ts"
import {
  type DispatchView,
  emptyView,
  foldDispatch,
  type OpenJob,
} from "#actors/share-protection/dispatch/view.ts"
import {
  admitJob,
  type Hold,
  type JobFailure,
  rejectJob,
  unassignJob,
} from "#actors/share-protection/jobs/course.ts"
import { assignment, jobOrder } from "#actors/share-protection/jobs/orders.ts"
import {
  deadWorkerJobs,
  forgottenJobs,
  orphanedJobs,
  type RecoveryOptions,
  stopRemnants,
  deadlineOf,
} from "#actors/share-protection/jobs/recovery.ts"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { makeBackoffs, type WorkerBackoffs } from "#actors/share-protection/processes/worker-rest.ts"
import { enrolledPlaces, formerPasswords, isTaken } from "#actors/share-protection/target-bucket.ts"
import { Log } from "#events/log.ts"
import { former_passwords_max } from "#schemas/share-protection/job-order.ts"

export interface DispatchOptions extends RecoveryOptions {
  readonly worker_boot_max_failures: number
  readonly worker_boot_failure_window_seconds: number
}

const no_worker: JobFailure = {
  code: "svc.worker_unavailable",
  detail: "No worker can be had: too many failed to boot.",
  category: "operator_action_required",
  wrote_nothing: true,
}

/** Backups and restores whose target is enrolled by now. */
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

/** Each job that can begin now, with the worker that has most room. */
const assignments = (
  view: DispatchView,
  log: Log["Service"],
  rests: WorkerBackoffs,
  now: number,
): ReadonlyArray<Caused> => {
  const slots = freeSlots(view).filter(({ worker_id }) => !rests.isResting(worker_id, now))
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

/** Orders for jobs that were given to a worker which has not begun them. */
const offers = (
  view: DispatchView,
  log: Log["Service"],
  agents: Agents["Service"],
  rests: WorkerBackoffs,
): ReadonlyArray<Caused> => {
  const open: Array<Caused> = []
  for (const job of view.jobs.values()) {
    const { hold, job_id } = job
    if (hold === null || job.started) continue
    if (view.workers.get(hold.worker_id)?.state === "dead") continue
    open.push({
      command_id: `offer-${job_id}-${hold.fence}`,
      cause: String(job.position),
      batch: Effect.map(offered(view, log, agents, rests, job, hold), (is_taken) =>
        // It was not taken: another worker may take it.
        is_taken ? [] : unassignJob(job, hold),
      ),
    })
  }
  return open
}

/**
 * What only an enrollment is told, of others that have or had its bucket; undefined where the
 * target was moved to a bucket in which another one is being enrolled.
 */
const enrollmentOf = (view: DispatchView, { job_type, target_id }: OpenJob) => {
  if (job_type !== "target_enroll") return {}
  const [place = ""] = view.targets.get(target_id)?.places ?? []
  if (enrolledPlaces(view, target_id).has(place)) return undefined
  const former_password_refs = formerPasswords(view, target_id, former_passwords_max)
  return { former_password_refs, is_taken: isTaken(view, target_id) }
}

/** Whether the worker takes the job. */
const offered = Effect.fnUntraced(function* (
  view: DispatchView,
  log: Log["Service"],
  { offer }: Agents["Service"],
  rests: WorkerBackoffs,
  job: OpenJob,
  hold: Hold,
) {
  const { worker_id } = hold
  const enrollment = enrollmentOf(view, job)
  const order = enrollment && (yield* jobOrder(log, job, hold, enrollment))
  if (order === undefined) return false
  const asked = yield* Effect.result(offer(worker_id, order))
  if (asked._tag === "Success") rests.taken(worker_id)
  else rests.refused(worker_id, yield* Clock.currentTimeMillis)
  return asked._tag === "Success"
})

/** After the boot failures' stop nothing will ever take a job: it says so. */
const refusals = (
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

/** One conductor of all runs it. */
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
        const rests = makeBackoffs()
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
            const begun = [
              ...admissions(view),
              ...assignments(view, log, rests, now),
              ...offers(view, log, agents, rests),
              ...refusals(view, options, now),
            ]
            return joined(
              deadWorkerJobs(view, options, now),
              forgotten(view, now),
              stopRemnants(view, log, agents, options, now),
              { now: [...orphanedJobs(view), ...begun], next: rests.nextEnd(now) },
              agenda.due(now),
            )
          },
        }
      }),
    }),
  )
