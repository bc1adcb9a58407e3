/** The view of dispatch: open jobs, and the targets, workers and leases that they need. */
import { Effect } from "effect"
import { Fleet, fleetAfter } from "#actors/share-protection/fleet.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import type { Hold, JobFacts } from "#actors/share-protection/jobs/transitions.ts"
import { Lease, leaseAfter } from "#actors/share-protection/lease.ts"
import { Restore, restoreAfter } from "#actors/share-protection/restore.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import { placeOf } from "#actors/share-protection/target-bucket.ts"
import { Worker, workerAfter } from "#actors/share-protection/worker.ts"
import { type Log, parseStream, type Recorded } from "#events/log.ts"
import { JobId, type ShareId, TargetId, WorkerId } from "#schemas/share-protection/id.ts"
import type { JobState } from "#schemas/share-protection/job.ts"

type After<F extends (...args: never) => Effect.Effect<unknown, unknown>> = Effect.Success<
  ReturnType<F>
>

/** A job that has not ended. */
export interface OpenJob extends JobFacts {
  /** Position of its last commit. */
  readonly position: number
  /** Time of that commit, as epoch milliseconds. */
  readonly since: number
  readonly state: JobState
  readonly started: boolean
  readonly attempt: number
  readonly recasts: number
}

type TargetNow = After<typeof targetAfter>
type TargetFact = "status" | "upgrading" | "project_id" | "repository_password_ref"

/**
 * A target. Deleted targets are kept, because their jobs may still wait and a new target may use
 * the same bucket.
 */
export interface KnownTarget extends Pick<TargetNow, TargetFact> {
  /** Whether it has the trust and the key references that a worker needs. */
  readonly is_complete: boolean
  /** Place of its bucket, and its earlier places while a job there may still run. */
  readonly places: ReadonlyArray<string>
}

export interface KnownWorker extends After<typeof workerAfter> {
  /** Position of its last commit. */
  readonly position: number
  /** When it entered its state, or the first commit read in that state; epoch milliseconds. */
  readonly since: number
}

export interface DispatchView {
  /** In queue order. */
  readonly jobs: Map<JobId, OpenJob>
  /** Backups and restores that wait for admission, with their jobs. */
  readonly unadmitted: Map<string, JobId>
  readonly targets: Map<TargetId, KnownTarget>
  readonly workers: Map<WorkerId, KnownWorker>
  readonly leases: Map<TargetId, After<typeof leaseAfter> & { readonly position: number }>
  /** Jobs that restore in place and their shares; an ended job may still run. */
  readonly writing: Map<JobId, ShareId>
  fleet: After<typeof fleetAfter> | undefined
}

export const emptyView = (): DispatchView => ({
  jobs: new Map(),
  unadmitted: new Map(),
  targets: new Map(),
  workers: new Map(),
  leases: new Map(),
  writing: new Map(),
  fleet: undefined,
})

const final_states = new Set(["absent", "available", "error"])

/** Folds a commit into the view and returns the changed job, if any. */
export const foldDispatch = Effect.fnUntraced(function* (
  log: Log["Service"],
  view: DispatchView,
  recorded: Recorded,
) {
  const { stream, position, commit } = recorded
  const { name, id } = parseStream(stream)
  switch (name) {
    case Job.name:
      return yield* foldJob(log, view, recorded, JobId.make(id))
    case Target.name: {
      const target = yield* targetAfter(log, recorded)
      const { status, upgrading, trust_id, vault_secret_map } = target
      const { project_id, endpoint, bucket, repository_password_ref } = target
      const is_complete = trust_id !== null && vault_secret_map !== null
      const target_id = TargetId.make(id)
      const is_held = (view.leases.get(target_id)?.holds.length ?? 0) > 0
      const before = is_held ? (view.targets.get(target_id)?.places ?? []) : []
      const places = [...new Set([placeOf(endpoint, bucket), ...before])]
      const about = { project_id, places, repository_password_ref }
      view.targets.set(target_id, { status, upgrading, is_complete, ...about })
      return undefined
    }
    case Worker.name: {
      const worker_id = WorkerId.make(id)
      const worker = yield* workerAfter(log, recorded)
      const before = view.workers.get(worker_id)
      const since = before?.state === worker.state ? before.since : Date.parse(commit.at)
      view.workers.set(worker_id, { ...worker, position, since })
      return undefined
    }
    case Lease.name:
      view.leases.set(TargetId.make(id), { ...(yield* leaseAfter(log, recorded)), position })
      return undefined
    case Fleet.name:
      view.fleet = yield* fleetAfter(log, recorded)
      return undefined
    case Restore.name: {
      const { mode, dry_run, job_id, share_id } = yield* restoreAfter(log, recorded)
      if (mode === "in_place" && !dry_run) view.writing.set(job_id, share_id)
      break
    }
  }
  // Backups start as creating and restores as pending; any other state means admitted.
  if (!unadmitted_states.has(String(commit.snapshot.value))) view.unadmitted.delete(id)
  return undefined
})

/** States of a backup or restore before admission. */
const unadmitted_states = new Set(["creating", "pending"])

const foldJob = Effect.fnUntraced(function* (
  log: Log["Service"],
  view: DispatchView,
  recorded: Recorded,
  job_id: JobId,
) {
  const { state, ...job } = yield* jobAfter(log, recorded)
  if (final_states.has(state)) {
    view.jobs.delete(job_id)
    view.unadmitted.delete(job.resource_id)
    return { job_id, open: undefined }
  }
  const { worker_id, fence, job_type, resource_id, target_id } = job
  const { project_id, share_id, backup_id } = job
  const hold: Hold | null = worker_id === null || fence === null ? null : { worker_id, fence }
  const open: OpenJob = {
    job_id,
    job_type,
    resource_id,
    target_id,
    project_id,
    share_id,
    backup_id,
    hold,
    state,
    started: job.started,
    attempt: job.attempt,
    recasts: job.recasts,
    position: recorded.position,
    since: Date.parse(recorded.commit.at),
  }
  const is_new = !view.jobs.has(job_id) && open.attempt === 1 && !open.started
  if (is_new && (job_type === "backup" || job_type === "restore")) {
    view.unadmitted.set(resource_id, job_id)
  }
  view.jobs.set(job_id, open)
  return { job_id, open }
})
