/**
 * Throttles background work on this thread. It gets nearly all of the time while the thread is
 * otherwise idle, and a tenth while the thread is busy, so that it completes under any load.
 */
import { performance } from "node:perf_hooks"
import type { Pacing } from "#projections/read-model.ts"

/** The thread is busy if other work used more than this share since the last pause. */
const busy_share = 0.2

/** Milliseconds of pause per millisecond of work while the thread is busy. */
const rest_factor = 9

/** Maximum pause in milliseconds, so that new work does not wait long. */
export const rest_ms_max = 200

/** Event loop utilization over an interval, in milliseconds. */
export interface Utilization {
  readonly active: number
  readonly idle: number
}

/** Computes the pause after `work_ms` of work, from the utilization since the last pause. */
export const restAfter = (work_ms: number, { active, idle }: Utilization): number => {
  const others_ms = Math.max(0, active - work_ms)
  const is_busy = others_ms > busy_share * (active + idle)
  return is_busy ? Math.min(rest_ms_max, rest_factor * work_ms) : 0
}

/** A node's journal commits four times a second; two commits are written together. */
const gather_ms = 500

/** Event loop utilization since the last call. */
const utilizationMeter = () => {
  let before = performance.eventLoopUtilization()
  return (): Utilization => {
    const now = performance.eventLoopUtilization()
    const used = performance.eventLoopUtilization(now, before)
    before = now
    return used
  }
}

/** Computes pauses from this thread's event loop utilization. */
export const threadRest = (): Pacing => {
  const used = utilizationMeter()
  return { gather_ms, after: (work_ms) => restAfter(work_ms, used()) }
}

/** Below this idle share the thread is full: under load some idle time is only waiting. */
const idle_share = 0.2

/** Whether this utilization leaves hardly any idle time. */
export const isFullOf = ({ active, idle }: Utilization): boolean =>
  idle < idle_share * (active + idle)

/** Whether this thread has had hardly any idle time since the last call. */
export const threadFull = () => {
  const used = utilizationMeter()
  return () => isFullOf(used())
}
