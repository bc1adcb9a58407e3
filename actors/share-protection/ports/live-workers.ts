/**
 * LiveWorkers: the port to the latest heartbeat of each worker and the progress of its jobs. These
 * values are not events: no commit holds them, and no rebuild of a read model affects them.
 *
 * Source: DESIGN of the running system, 5; document 2 §2 Job, progress; DECISIONS, worker.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"

/** Maximum number of workers in memory: those of a full domain (workers_max of schemas). */
const workers_kept_max = 10_000

/** The progress of a job. */
export interface JobProgress {
  readonly job_id: JobId
  /** 0 to 100, an integer. */
  readonly progress: number
  readonly bytes_done: number
  /** 0 while unknown. */
  readonly bytes_total: number
}

/** A heartbeat: the worker and the progress of all its jobs. */
export interface WorkerHeartbeat {
  readonly worker_id: WorkerId
  readonly jobs: ReadonlyArray<JobProgress>
}

/** The latest heartbeat of a worker that this process received. */
export interface LiveWorker extends WorkerHeartbeat {
  /**
   * Epoch milliseconds by this process's clock, the only one that decides whether a worker is
   * silent.
   */
  readonly received_at: number
}

export class LiveWorkers extends Context.Service<
  LiveWorkers,
  {
    /** Publishes a heartbeat to all processes. Never fails: the next heartbeat replaces it. */
    readonly publish: (beat: WorkerHeartbeat) => Effect.Effect<void>
    /** The latest heartbeat of the worker; undefined if this process received none. */
    readonly find: (worker_id: string) => LiveWorker | undefined
    /** The latest progress of the job; undefined if no worker runs it. */
    readonly progressOf: (job_id: string) => JobProgress | undefined
  }
>()("actors/share-protection/LiveWorkers") {
  /** For a single process. */
  static readonly memory = Layer.sync(this, () => {
    const { record, find, progressOf } = makeLiveWorkers()
    return { publish: record, find, progressOf }
  })
}

/** A bounded table of heartbeats, which evicts the worker that was silent longest. */
export const makeLiveWorkers = (workers_max = workers_kept_max) => {
  const workers = new Map<string, LiveWorker>()
  const jobs = new Map<string, { readonly worker_id: WorkerId; readonly progress: JobProgress }>()

  const forget = (worker_id: string) => {
    for (const { job_id } of workers.get(worker_id)?.jobs ?? []) {
      if (jobs.get(job_id)?.worker_id === worker_id) jobs.delete(job_id)
    }
    workers.delete(worker_id)
  }

  return {
    record: (beat: WorkerHeartbeat) =>
      Effect.map(Clock.currentTimeMillis, (received_at) => {
        const { worker_id } = beat
        forget(worker_id)
        workers.set(worker_id, { ...beat, received_at })
        for (const progress of beat.jobs) jobs.set(progress.job_id, { worker_id, progress })
        const [oldest] = workers.size > workers_max ? workers.keys() : []
        if (oldest !== undefined) forget(oldest)
      }),
    find: (worker_id: string) => workers.get(worker_id),
    progressOf: (job_id: string) => jobs.get(job_id)?.progress,
  }
}
