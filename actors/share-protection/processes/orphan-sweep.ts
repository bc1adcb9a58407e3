/**
 * orphan_sweep: reports orphaned leases and jobs that wait too long.
 *
 * Dispatch resolves all of them itself; a finding that persists over two runs needs attention.
 * Source: document 2 §2 Reconciliation status, §9 (2).
 */
import { Clock, Effect, Stream } from "effect"
import {
  type DispatchView,
  emptyView,
  foldDispatch,
} from "#actors/share-protection/dispatch/view.ts"
import type { Loop } from "#actors/share-protection/processes/reconciling.ts"
import { Log } from "#events/log.ts"

const part = "share-protection"

/** Reads the whole log once, and only new commits in later runs. */
export const orphanSweep = (queued_job_deadline_seconds: number) =>
  Effect.map(Log, (log): Loop => {
    const view = emptyView()
    let position: number | undefined
    const new_commits = Stream.suspend(() =>
      position === undefined ? log.lasts(part) : log.read(part, position),
    )
    const readNewCommits = Stream.runForEach(new_commits, (recorded) => {
      position = Math.max(position ?? 0, recorded.position)
      return foldDispatch(log, view, recorded)
    })
    return Effect.gen(function* () {
      yield* readNewCommits
      const cutoff = (yield* Clock.currentTimeMillis) - queued_job_deadline_seconds * 1000
      return [...waiting(view, cutoff, queued_job_deadline_seconds), ...orphaned(view)]
    })
  })

const waiting = ({ jobs }: DispatchView, cutoff: number, seconds: number) =>
  [...jobs.values()]
    .filter(({ hold, since, recasts }) => hold === null && (recasts > 0 || since < cutoff))
    .map(({ job_id, job_type }) => ({
      kind: "job_waiting",
      subject: job_id,
      detail: `A job of type ${job_type} has waited for more than ${seconds} s.`,
    }))

const orphaned = ({ jobs, leases }: DispatchView) =>
  [...leases.values()]
    .flatMap(({ holds }) => holds)
    .filter(({ job_id, fence }) => jobs.get(job_id)?.hold?.fence !== fence)
    .map(({ job_id, worker_id }) => ({
      kind: "lease_orphaned",
      subject: job_id,
      detail: `Worker ${worker_id} holds a repository for a job that has ended.`,
    }))
