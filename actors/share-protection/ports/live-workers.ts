/**
 * LiveWorkers, the port to what the workers last said of themselves and of their jobs. These
 * values are no events: they are in no commit, and no rebuild of a read model touches them.
 *
 * Source: DESIGN of the running system, 5; document 2 §2 Job, progress; DECISIONS, worker.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"

/** Workers that are kept in mind: those of a full domain (workers_max of schemas). */
const heard_max = 10_000

/** How far a job is. */
export interface JobProgress {
  readonly job_id: JobId
  /** 0 to 100, an integer. */
  readonly progress: number
  readonly bytes_done: number
  /** 0 while it is not known. */
  readonly bytes_total: number
}

/** A heartbeat as it was sent: the worker, and all that it runs. */
export interface WorkerHeartbeat {
  readonly worker_id: WorkerId
  readonly jobs: ReadonlyArray<JobProgress>
}

/** A worker as this process heard it last. */
export interface LiveWorker extends WorkerHeartbeat {
  /** Epoch milliseconds by this process's own clock: no other clock decides about silence. */
  readonly received_at: number
}

export class LiveWorkers extends Context.Service<
  LiveWorkers,
  {
    /** Tells every process. It never fails: the next heartbeat tells it anew. */
    readonly beat: (beat: WorkerHeartbeat) => Effect.Effect<void>
    /** What this process has heard of the worker; undefined when that is nothing. */
    readonly find: (worker_id: string) => LiveWorker | undefined
    /** What a worker that runs the job said of it last; undefined when none does. */
    readonly progressOf: (job_id: string) => JobProgress | undefined
  }
>()("actors/share-protection/LiveWorkers") {
  /** For one process. */
  static readonly memory = Layer.sync(this, () => {
    const { hear, find, progressOf } = makeLiveWorkers()
    return { beat: hear, find, progressOf }
  })
}

/** What was heard of so many workers: the one that was silent longest is forgotten first. */
export const makeLiveWorkers = (workers_max = heard_max) => {
  const workers = new Map<string, LiveWorker>()
  const jobs = new Map<string, { readonly worker_id: WorkerId; readonly said: JobProgress }>()

  const forget = (worker_id: string) => {
    for (const { job_id } of workers.get(worker_id)?.jobs ?? []) {
      if (jobs.get(job_id)?.worker_id === worker_id) jobs.delete(job_id)
    }
    workers.delete(worker_id)
  }

  return {
    hear: (beat: WorkerHeartbeat) =>
      Effect.map(Clock.currentTimeMillis, (heard_at) => {
        const { worker_id } = beat
        forget(worker_id)
        workers.set(worker_id, { ...beat, received_at: heard_at })
        for (const said of beat.jobs) jobs.set(said.job_id, { worker_id, said })
        const [oldest] = workers.size > workers_max ? workers.keys() : []
        if (oldest !== undefined) forget(oldest)
      }),
    find: (worker_id: string) => workers.get(worker_id),
    progressOf: (job_id: string) => jobs.get(job_id)?.said,
  }
}
