/**
 * Silent workers: marks a worker dead that sent no heartbeat within the deadline.
 *
 * Each worker gets a full deadline from the first check, and again after this process was suspended
 * or its clock was set, because it may have missed heartbeats.
 *
 * Source: document 2 §8 conductor.worker_heartbeat_deadline_seconds.
 */
import { address } from "#actors/commands.ts"
import { type Caused, type Due, sleep_ms_max } from "#actors/process.ts"
import type { DispatchView } from "#actors/share-protection/dispatch/view.ts"
import type { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { MarkWorkerDead } from "#schemas/share-protection/worker.ts"

const heartbeat_states = new Set(["ready", "draining", "retiring"])

/** The workers that are silent at a time (epoch milliseconds), and the next deadline. */
export const silentWorkers = ({ find }: LiveWorkers["Service"], deadline_ms: number) => {
  const observed_since = new Map<WorkerId, number>()
  let next_check_at = Infinity

  return ({ workers }: Pick<DispatchView, "workers">, now: number): Due => {
    if (now > next_check_at + deadline_ms / 2) observed_since.clear()
    const silent: Array<Caused> = []
    let next = Infinity
    for (const [worker_id, { state, position }] of workers) {
      if (!heartbeat_states.has(state)) {
        observed_since.delete(worker_id)
        continue
      }
      const since = observed_since.get(worker_id) ?? now
      observed_since.set(worker_id, since)
      const last_seen_at = Math.max(since, find(worker_id)?.received_at ?? 0)
      const deadline = last_seen_at + deadline_ms
      if (deadline > now) {
        next = Math.min(next, deadline)
        continue
      }
      const reason = `No heartbeat arrived for ${deadline_ms / 1000} s.`
      silent.push({
        command_id: `silent-${worker_id}-${last_seen_at}`,
        cause: String(position),
        batch: [address(Worker, worker_id, MarkWorkerDead.make({ reason }))],
      })
    }
    next_check_at = Math.min(next, now + sleep_ms_max)
    return { now: silent, next }
  }
}
