/**
 * What is left of this thread for work that nobody waits for: nearly all of it while it is idle,
 * and a tenth while others use it, so that such work comes to its end under any load.
 */
import { performance } from "node:perf_hooks"
import type { Pacing } from "#projections/read-model.ts"

/** Others use the thread where they had more than this share of the time since the last rest. */
const busy_share = 0.2

/** Milliseconds of rest for each one of work while others use the thread. */
const rest_factor = 9

/** Longest rest, in milliseconds: less than what somebody waits who comes meanwhile. */
export const rest_ms_max = 200

/** What the event loop did since a moment, in milliseconds. */
export interface Utilization {
  readonly active: number
  readonly idle: number
}

/** The rest after `took_ms` of work, of `took_ms` and others' use since the rest before. */
export const restAfter = (took_ms: number, { active, idle }: Utilization): number => {
  const others_ms = Math.max(0, active - took_ms)
  const is_busy = others_ms > busy_share * (active + idle)
  return is_busy ? Math.min(rest_ms_max, rest_factor * took_ms) : 0
}

/** Commits of a node's journal come four times a second: those of two are written together. */
const gather_ms = 500

/** What this thread's loop did since it was asked last. */
const usedSince = () => {
  let before = performance.eventLoopUtilization()
  return (): Utilization => {
    const now = performance.eventLoopUtilization()
    const used = performance.eventLoopUtilization(now, before)
    before = now
    return used
  }
}

/** How long to rest after some milliseconds of work, by what this thread's loop did meanwhile. */
export const threadRest = (): Pacing => {
  const used = usedSince()
  return { gather_ms, after: (took_ms) => restAfter(took_ms, used()) }
}

/** Less than this share of the time left is none: under load some of it is only waiting. */
const idle_share = 0.2

/** Whether a thread that did this has hardly any time left. */
export const isFullOf = ({ active, idle }: Utilization): boolean =>
  idle < idle_share * (active + idle)

/** Whether this thread had hardly any time left since it was asked last. */
export const threadFull = () => {
  const used = usedSince()
  return () => isFullOf(used())
}
