/**
 * The unit of work of every contestant in the command suite: a worker takes or releases a job. Load
 * the worker's state, check the rule, append one event, make the row visible, read it.
 */

/** Enough aggregates to avoid conflicts, which this suite does not measure. */
export const workers = 1_000

export interface Command {
  readonly worker_id: string
  readonly job_id: string
  readonly type: "AssignJob" | "ReleaseJob"
  /** The worker's version after this command, from 1 on. */
  readonly version: number
}

export interface Worker {
  readonly worker_id: string
  readonly version: number
  readonly running_jobs: number
}

/**
 * Passes `handle` the next command of the worker that has been idle longest: it takes or releases a
 * job. Thus no worker has two commands in flight, however long one of them is delayed.
 */
export const inTurn = (handle: (command: Command) => Promise<void>) => {
  const free = Array.from({ length: workers }, (_, n) => ({ n, version: 0 }))
  return async (): Promise<void> => {
    const next = free.shift()
    if (!next) throw new Error(`more than ${workers} in flight`)
    const version = next.version + 1
    await handle({
      worker_id: `w-${next.n}`,
      job_id: `job-${next.n}-${next.version >> 1}`,
      type: version % 2 === 1 ? "AssignJob" : "ReleaseJob",
      version,
    })
    free.push({ n: next.n, version })
  }
}

/** The event of a command: about 300 bytes of JSON. */
export const eventOf = (command: Command, now: Date) => ({
  type: command.type === "AssignJob" ? "WorkerJobAssigned" : "WorkerJobReleased",
  worker_id: command.worker_id,
  job_id: command.job_id,
  project_id: "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77",
  request_id: "req-0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e78",
  image_version: "2026.11.20-1",
  engine_version: "0.18.1",
  occurred_at: now.toISOString(),
})

export const unregistered = (worker_id: string): Worker => ({
  worker_id,
  version: 0,
  running_jobs: 0,
})

/** The rule: one job at a time. Returns the state after the command, or throws its rejection. */
export const decide = (worker: Worker, command: Command): Worker => {
  const running_jobs = worker.running_jobs + (command.type === "AssignJob" ? 1 : -1)
  if (running_jobs < 0 || running_jobs > 1) {
    throw new Error(`${worker.worker_id} with ${worker.running_jobs} refuses ${command.type}`)
  }
  return { worker_id: worker.worker_id, version: worker.version + 1, running_jobs }
}

/** Throws unless the row that was read reflects the command. */
export const mustShow = (row: Worker | undefined, command: Command): void => {
  if (row?.version !== command.version || row.running_jobs !== command.version % 2) {
    throw new Error(`the row after ${command.version} of ${command.worker_id} is not its own`)
  }
}
