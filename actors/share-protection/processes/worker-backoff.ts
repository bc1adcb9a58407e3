/**
 * Back-off of workers: a worker that rejects an order gets no further orders for a while, so that
 * another worker gets the job, and rejected orders are not repeated in a tight loop.
 *
 * Source: document 2 §8 worker.command_timeout_seconds.
 */
import type { WorkerId } from "#schemas/share-protection/id.ts"

/** Initial back-off in milliseconds; it doubles with each rejected order. */
const backoff_ms = 5_000

/** Maximum back-off in milliseconds: the default timeout of an order. */
const backoff_ms_max = 300_000

/** All times are epoch milliseconds. */
export const makeBackoffs = () => {
  const backoffs = new Map<WorkerId, { readonly until: number; readonly next_ms: number }>()
  return {
    refused: (worker_id: WorkerId, now: number) => {
      const ms = backoffs.get(worker_id)?.next_ms ?? backoff_ms
      backoffs.set(worker_id, { until: now + ms, next_ms: Math.min(2 * ms, backoff_ms_max) })
    },
    taken: (worker_id: WorkerId) => backoffs.delete(worker_id),
    isResting: (worker_id: WorkerId, now: number) => (backoffs.get(worker_id)?.until ?? 0) > now,
    /** End of the next back-off; Infinity if there is none. */
    nextEnd: (now: number) =>
      Math.min(...[...backoffs.values()].map(({ until }) => (until > now ? until : Infinity))),
  }
}

export type WorkerBackoffs = ReturnType<typeof makeBackoffs>
