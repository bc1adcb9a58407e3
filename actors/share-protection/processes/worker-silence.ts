/**
 * Silence: a worker of which nothing was heard for the deadline is dead.
 *
 * What this process could not hear it holds against nobody: each worker has a whole deadline from
 * when it is first looked at, and again when the process itself was asleep, or its clock was set.
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

const heard_states = new Set(["ready", "draining", "retiring"])

/** Workers that are silent at a time (epoch milliseconds), and when the next one will be. */
export const silentWorkers = ({ find }: LiveWorkers["Service"], deadline_ms: number) => {
  const granted = new Map<WorkerId, number>()
  let looks_at = Infinity

  return ({ workers }: Pick<DispatchView, "workers">, now: number): Due => {
    if (now > looks_at + deadline_ms / 2) granted.clear()
    const silent: Array<Caused> = []
    let next = Infinity
    for (const [worker_id, { state, position }] of workers) {
      if (!heard_states.has(state)) {
        granted.delete(worker_id)
        continue
      }
      const since = granted.get(worker_id) ?? now
      granted.set(worker_id, since)
      const heard_at = Math.max(since, find(worker_id)?.received_at ?? 0)
      const deadline = heard_at + deadline_ms
      if (deadline > now) {
        next = Math.min(next, deadline)
        continue
      }
      const reason = `Nothing was heard of it for ${deadline_ms / 1000} s.`
      silent.push({
        command_id: `silent-${worker_id}-${heard_at}`,
        cause: String(position),
        batch: [address(Worker, worker_id, MarkWorkerDead.make({ reason }))],
      })
    }
    looks_at = Math.min(next, now + sleep_ms_max)
    return { now: silent, next }
  }
}
