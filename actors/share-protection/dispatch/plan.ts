/**
 * The plan of dispatch: the jobs that can start now, and the workers for them.
 *
 * Jobs are served first come, first served. Only the next job of each repository is planned,
 * because the fence of the following one depends on its commit. No job overtakes one that needs
 * exclusive access. Only one restore in place writes a share at a time, and no backup runs
 * meanwhile, because two restores would delete each other's files. Of the targets for one bucket
 * only one is enrolled at a time, so that the next finds the repository of the previous one.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, backup create.
 */
import type { DispatchView, OpenJob } from "#actors/share-protection/dispatch/view.ts"
import { lease_modes } from "#actors/share-protection/jobs/transitions.ts"
import { enrolledPlaces } from "#actors/share-protection/target-bucket.ts"
import type { ShareId, TargetId, WorkerId } from "#schemas/share-protection/id.ts"
import { type LeaseMode, lease_holds_max } from "#schemas/share-protection/lease.ts"

/** A worker and its number of free slots. */
export interface FreeSlots {
  readonly worker_id: WorkerId
  readonly position: number
  free: number
}

export const freeSlots = ({ workers }: DispatchView): Array<FreeSlots> => {
  const slots: Array<FreeSlots> = []
  for (const [worker_id, { state, capacity_slots, running_jobs, position }] of workers) {
    const free = (capacity_slots ?? 0) - running_jobs.length
    if (state === "ready" && free > 0) slots.push({ worker_id, position, free })
  }
  return slots
}

/** The worker with the most free slots. */
export const leastLoaded = (slots: ReadonlyArray<FreeSlots>): FreeSlots | undefined =>
  slots.reduce<FreeSlots | undefined>(
    (best, slot) => (slot.free > (best?.free ?? 0) ? slot : best),
    undefined,
  )

/** Whether the state of the job's target allows it to start. */
export const isReady = ({ targets }: DispatchView, { target_id, job_type }: OpenJob) => {
  const target = targets.get(target_id)
  if (!target?.is_complete) return false
  if (job_type === "target_enroll") return target.status === "pending"
  // During an upgrade of the target, only the upgrade itself may run.
  return target.status === "available" && target.upgrading === (job_type === "repo_format_upgrade")
}

/** Whether a repository's lease can grant this mode in addition to its current holds. */
const isCompatible = (held: ReadonlyArray<{ readonly mode: LeaseMode }>, mode: LeaseMode) => {
  if (mode === "exclusive") return held.length === 0
  if (held.length >= lease_holds_max || held.some((hold) => hold.mode === "exclusive")) return false
  return mode === "read" || held.every((hold) => hold.mode === "read")
}

/** Tracks the shares that jobs read and write, and whether another job may use one. */
const shareAccess = ({ jobs, leases, writing }: DispatchView) => {
  const read = new Set<ShareId>()
  const written = new Set<ShareId>()
  const claim = ({ job_id, job_type, share_id }: OpenJob) => {
    const into = writing.get(job_id)
    if (into !== undefined) written.add(into)
    else if (job_type === "backup" && share_id !== null) read.add(share_id)
  }
  for (const job of jobs.values()) if (job.hold !== null) claim(job)
  // A cancelled or retried job keeps its share until its engine has stopped.
  for (const { holds } of leases.values()) {
    for (const { job_id } of holds) {
      const into = writing.get(job_id)
      if (into !== undefined) written.add(into)
    }
  }
  const isFree = ({ job_id, job_type, share_id }: OpenJob) => {
    const into = writing.get(job_id)
    if (into !== undefined) return !written.has(into) && !read.has(into)
    return job_type !== "backup" || share_id === null || !written.has(share_id)
  }
  return { claim, isFree }
}

/** Jobs that only need a worker, in queue order. */
export function* startable(view: DispatchView): Generator<OpenJob, void> {
  const blocked = new Set<TargetId>()
  const shares = shareAccess(view)
  const enrolled = enrolledPlaces(view)
  for (const job of view.jobs.values()) {
    const { target_id, hold, job_type } = job
    if (hold !== null || blocked.has(target_id) || !isReady(view, job)) continue
    if (!shares.isFree(job)) continue
    const places = job_type === "target_enroll" ? (view.targets.get(target_id)?.places ?? []) : []
    if (places.some((place) => enrolled.has(place))) continue
    const mode = lease_modes[job_type]
    const is_compatible = isCompatible(view.leases.get(target_id)?.holds ?? [], mode)
    if (is_compatible || mode === "exclusive") blocked.add(target_id)
    if (!is_compatible) continue
    shares.claim(job)
    for (const place of places) enrolled.add(place)
    yield job
  }
}
