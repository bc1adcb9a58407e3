/**
 * Workers' rests: who did not take an order is left alone for a while, so that a job which one
 * worker does not take goes to another, and none is asked again at once and for ever.
 *
 * Source: document 2 §8 worker.command_timeout_seconds.
 */
import type { WorkerId } from "#schemas/share-protection/id.ts"

/** First rest, in milliseconds; it doubles with each order that is not taken. */
const rest_ms = 5_000

/** Longest rest, in milliseconds: what is as long as an unanswered order by default. */
const rest_ms_max = 300_000

/** All times are epoch milliseconds. */
export const makeBackoffs = () => {
  const rests = new Map<WorkerId, { readonly until: number; readonly next_ms: number }>()
  return {
    refused: (worker_id: WorkerId, now: number) => {
      const ms = rests.get(worker_id)?.next_ms ?? rest_ms
      rests.set(worker_id, { until: now + ms, next_ms: Math.min(2 * ms, rest_ms_max) })
    },
    taken: (worker_id: WorkerId) => rests.delete(worker_id),
    isResting: (worker_id: WorkerId, now: number) => (rests.get(worker_id)?.until ?? 0) > now,
    /** When the next rest is over; Infinity when nobody rests. */
    nextEnd: (now: number) =>
      Math.min(...[...rests.values()].map(({ until }) => (until > now ? until : Infinity))),
  }
}

export type WorkerBackoffs = ReturnType<typeof makeBackoffs>
