/** The messages of the replay suite: commits of 10,000 workers, as Almanac's log stores them. */
import type { Commit } from "#events/log.ts"
import { eventOf } from "./work.ts"

/** JetStream's stream and the subjects in it. */
export const stream = "COMMITS"
export const subject_prefix = "commit."

export const messages = 100_000

/** Thus each worker has ten commits, and a commit remembers at most ten command ids. */
export const workers = 10_000

/** A fixed time, so that every message is the same on each run. */
const began = Date.UTC(2026, 10, 20)

/** The i-th message, from 0; its position in the log is i + 1. */
export const commitOf = (i: number): { readonly subject: string; readonly commit: Commit } => {
  const [n, lap] = [i % workers, Math.floor(i / workers)]
  const worker_id = `w-${n}`
  const job_id = `job-${n}-${lap >> 1}`
  const type = lap % 2 === 0 ? "AssignJob" : "ReleaseJob"
  const now = new Date(began + i)
  const running_jobs = (lap + 1) % 2
  const ids = Array.from({ length: lap + 1 }, (_, k) => `0193f5a0-7c1e-7d3a-${n + 1e3}-${k + 1e11}`)
  const commit: Commit = {
    v: 1,
    events: [eventOf({ worker_id, job_id, type, version: lap + 1 }, now)],
    snapshot: { machine: 1, value: "ready", context: { running_jobs, job_id } },
    commands: ids,
    actor: "conductor",
    at: now.toISOString(),
    request_id: "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e78",
    correlation_id: "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e79",
    prev: (i + 1).toString(16).padStart(64, "0"),
  }
  return { subject: `${subject_prefix}bench.worker.${worker_id}`, commit }
}

/** The read model's totals once it contains all messages. */
export interface Totals {
  readonly rows: number
  readonly running_jobs: number
  /** Sum of each row's `position`: the log position of the last event that changed it. */
  readonly positions: number
}

const laps = messages / workers

export const totals_expected: Totals = {
  rows: workers,
  running_jobs: laps % 2 === 1 ? workers : 0,
  positions: ((messages - workers + 1 + messages) * workers) / 2,
}

/** Throws unless the read model agrees with the messages. */
export const mustHold = (totals: Totals): void => {
  const [found, expected] = [JSON.stringify(totals), JSON.stringify(totals_expected)]
  if (found !== expected) throw new Error(`the read model holds ${found}, not ${expected}`)
}
