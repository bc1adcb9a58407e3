/**
 * Dispatch's plan: which jobs could begin now, and on which workers.
 *
 * Jobs go first come, first served. For each repository only the next one is planned, since the
 * fence of the one after rests on its commit; and nothing overtakes a job that has to be alone.
 * A share is written by one restore in place at a time, and is not backed up meanwhile: else each
 * of two restores would delete what the other one brought. Of the targets that are registered for
 * one bucket one is enrolled at a time: the next one finds what the one before has made.
 *
 * Source: document 2 §3 Job; DECISIONS, document 2, backup create.
 */
import type { DispatchView, OpenJob } from "#actors/share-protection/dispatch/view.ts"
import { lease_modes } from "#actors/share-protection/jobs/course.ts"
import { enrolledPlaces } from "#actors/share-protection/target-bucket.ts"
import type { ShareId, TargetId, WorkerId } from "#schemas/share-protection/id.ts"
import { type LeaseMode, lease_holds_max } from "#schemas/share-protection/lease.ts"

/** A worker that takes jobs, and how many more. */
export interface Slots {
  readonly worker_id: WorkerId
  readonly position: number
  free: number
}

export const freeSlots = ({ workers }: DispatchView): Array<Slots> => {
  const slots: Array<Slots> = []
  for (const [worker_id, { state, capacity_slots, running_jobs, position }] of workers) {
    const free = (capacity_slots ?? 0) - running_jobs.length
    if (state === "ready" && free > 0) slots.push({ worker_id, position, free })
  }
  return slots
}

/** The one that has most room. */
export const leastLoaded = (slots: ReadonlyArray<Slots>): Slots | undefined =>
  slots.reduce<Slots | undefined>(
    (best, slot) => (slot.free > (best?.free ?? 0) ? slot : best),
    undefined,
  )

/** Whether the job's target lets it begin. */
export const isReady = ({ targets }: DispatchView, { target_id, job_type }: OpenJob) => {
  const target = targets.get(target_id)
  if (!target?.is_complete) return false
  if (job_type === "target_enroll") return target.status === "pending"
  // The upgrade itself is the one job that runs while its target is upgraded.
  return target.status === "available" && target.upgrading === (job_type === "repo_format_upgrade")
}

/** What a repository's lease lets in beside what holds it. */
const fits = (held: ReadonlyArray<{ readonly mode: LeaseMode }>, mode: LeaseMode) => {
  if (mode === "exclusive") return held.length === 0
  if (held.length >= lease_holds_max || held.some((hold) => hold.mode === "exclusive")) return false
  return mode === "read" || held.every((hold) => hold.mode === "read")
}

/** Who is in which share, and whether another job may go there too. */
const sharesOf = ({ jobs, leases, writing }: DispatchView) => {
  const read = new Set<ShareId>()
  const written = new Set<ShareId>()
  const enter = ({ job_id, job_type, share_id }: OpenJob) => {
    const into = writing.get(job_id)
    if (into !== undefined) written.add(into)
    else if (job_type === "backup" && share_id !== null) read.add(share_id)
  }
  for (const job of jobs.values()) if (job.hold !== null) enter(job)
  // What was cancelled, or is in another attempt by now, holds on until its engine stopped.
  for (const { holds } of leases.values()) {
    for (const { job_id } of holds) {
      const into = writing.get(job_id)
      if (into !== undefined) written.add(into)
    }
  }
  const isOpen = ({ job_id, job_type, share_id }: OpenJob) => {
    const into = writing.get(job_id)
    if (into !== undefined) return !written.has(into) && !read.has(into)
    return job_type !== "backup" || share_id === null || !written.has(share_id)
  }
  return { enter, isOpen }
}

/** Jobs that wait for nothing but a worker, in their order. */
export function* startable(view: DispatchView): Generator<OpenJob, void> {
  const passed = new Set<TargetId>()
  const shares = sharesOf(view)
  const enrolled = enrolledPlaces(view)
  for (const job of view.jobs.values()) {
    const { target_id, hold, job_type } = job
    if (hold !== null || passed.has(target_id) || !isReady(view, job)) continue
    if (!shares.isOpen(job)) continue
    const places = job_type === "target_enroll" ? (view.targets.get(target_id)?.places ?? []) : []
    if (places.some((place) => enrolled.has(place))) continue
    const mode = lease_modes[job_type]
    const is_fitting = fits(view.leases.get(target_id)?.holds ?? [], mode)
    if (is_fitting || mode === "exclusive") passed.add(target_id)
    if (!is_fitting) continue
    shares.enter(job)
    for (const place of places) enrolled.add(place)
    yield job
  }
}
