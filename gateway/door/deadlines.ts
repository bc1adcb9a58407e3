/**
 * Enforces the deadlines of all requests in flight, by one periodic sweep instead of a timer per
 * request.
 *
 * The deadline counts from the end of the request's body; for a stream, or while the body arrives,
 * from the last byte. An unhurried request has a deadline only while its body arrives, and while
 * its client does not read.
 *
 * A body also has a total deadline, which grows with the bytes received, so that a client cannot
 * keep a request open by sending a byte every now and then. Source: DECISIONS of document 1, limits
 * not shown; decisions 0154 and 0186.
 */
import { Clock, Effect } from "effect"
import { type Progress, Transport } from "#gateway/transport.ts"
import type { Settings } from "#schemas/settings.ts"

export interface InFlight {
  /** Ends the request, and may be called again while it has not ended. */
  readonly interrupt: () => void
  readonly source: object
  /** Set when the response is a stream. */
  is_streamed: boolean
  /** Whether its response has no deadline. */
  readonly is_unhurried: boolean
  /** Set before the request is interrupted: the response is 504, or 408 if it `is_slow`. */
  is_late: boolean
  /** Whether its body arrived too slowly. */
  is_slow: boolean
  /** Responds while the body is still arriving; `interrupt` then closes the connection. */
  readonly giveUp: () => void
  readonly arrived_ms: number
  since_ms: number
  bytes: number
  is_read: boolean
  /** Bytes that the connection had received at the first sweep of this request. */
  received_before: number
  /** How long the body waited for this process to read it, in milliseconds. */
  held_up_ms: number
}

export interface Deadlines {
  readonly add: (
    request: Pick<InFlight, "interrupt" | "source" | "is_streamed" | "is_unhurried" | "giveUp">,
  ) => InFlight
  readonly remove: (request: InFlight) => void
  /** Requests in flight now. */
  readonly count: () => number
}

/** Deadlines are accurate to a twentieth; there are at most 40 sweeps per second. */
const sweeps_per_deadline = 20
const sweep_ms_min = 25
/** Short enough that a changed deadline applies soon. */
const sweep_ms_max = 1000
const ms_per_s = 1000

/** A body that is not a stream may take ten deadlines in total, regardless of its speed. */
const body_deadlines = 10

/** Not swept yet. Most requests end before the first sweep, so their progress is never read. */
const unseen = -1

export interface DeadlineSettings {
  readonly deadline_s: number
  /** Minimum speed of a body after its first `deadline_s`; 0: no minimum. */
  readonly body_bytes_per_s_min: number
}

/** The deadlines in the settings. */
export const deadlinesOf = ({ api }: Settings): DeadlineSettings => ({
  deadline_s: api.request_timeout_seconds,
  body_bytes_per_s_min: api.body_bytes_per_second_min,
})

/** Whether a body arrives too slowly, not counting the time in which this process did not read. */
const isTooSlow = (
  { is_streamed, arrived_ms, held_up_ms, received_before }: InFlight,
  received_bytes: number,
  now_ms: number,
  { deadline_s, body_bytes_per_s_min }: DeadlineSettings,
) => {
  const elapsed_s = (now_ms - arrived_ms) / ms_per_s
  if (!is_streamed && elapsed_s >= deadline_s * body_deadlines) return true
  if (body_bytes_per_s_min === 0) return false
  const earned_s = (received_bytes - received_before) / body_bytes_per_s_min
  return elapsed_s - held_up_ms / ms_per_s >= deadline_s + earned_s
}

interface Sweep {
  readonly now_ms: number
  /** Since the previous sweep. */
  readonly swept_ago_ms: number
  readonly rules: DeadlineSettings
}

/** Records the progress of a request; returns whether its deadline has passed. */
const isLate = (
  request: InFlight,
  { bytes, received_bytes, is_read, is_taken, is_held_up }: Progress,
  { now_ms, swept_ago_ms, rules }: Sweep,
) => {
  const is_first = request.bytes === unseen
  if (is_first) request.received_before = received_bytes
  if (is_held_up) request.held_up_ms += Math.min(swept_ago_ms, now_ms - request.arrived_ms)
  const is_awaited = request.is_unhurried && is_read && (!request.is_streamed || is_taken)
  const is_moving = request.is_streamed || !is_read
  const has_moved = is_awaited || (is_moving ? bytes !== request.bytes : !request.is_read)
  request.bytes = bytes
  request.is_read = is_read
  if (has_moved && !is_first) request.since_ms = now_ms
  // Check for silence first: DECISIONS requires 504 for it.
  if (now_ms - request.since_ms >= rules.deadline_s * ms_per_s) return true
  request.is_slow = !is_read && isTooSlow(request, received_bytes, now_ms, rules)
  return request.is_slow
}

/** Sweeps until the scope closes; reads `settings` each time. */
export const deadlines = Effect.fnUntraced(function* (settings: () => DeadlineSettings) {
  const { progressOf } = yield* Transport
  const clock = yield* Clock.Clock
  const requests = new Set<InFlight>()

  let swept_ms = clock.currentTimeMillisUnsafe()

  const sweep = () => {
    const now_ms = clock.currentTimeMillisUnsafe()
    const sweep = { now_ms, swept_ago_ms: now_ms - swept_ms, rules: settings() }
    swept_ms = now_ms
    for (const request of requests) {
      const was_late = request.is_late
      if (!was_late) request.is_late = isLate(request, progressOf(request.source), sweep)
      if (!request.is_late) continue
      try {
        if (!was_late && !request.is_streamed && !request.is_read) request.giveUp()
        else request.interrupt()
      } catch (defect) {
        // Remove it, so that the next sweep reaches the requests after it.
        requests.delete(request)
        throw defect
      }
    }
  }

  const pause = () => {
    const between_ms = (settings().deadline_s * ms_per_s) / sweeps_per_deadline
    return Math.min(sweep_ms_max, Math.max(sweep_ms_min, between_ms))
  }
  yield* Effect.suspend(() => Effect.sleep(pause())).pipe(
    Effect.andThen(Effect.sync(sweep)),
    // A failure to end a request must not stop the sweeps.
    Effect.catchDefect((defect) => Effect.logError("A request could not be ended.", defect)),
    Effect.forever,
    Effect.forkScoped,
  )

  const in_flight: Deadlines = {
    add: ({ interrupt, source, is_streamed, is_unhurried, giveUp }) => {
      const arrived_ms = clock.currentTimeMillisUnsafe()
      const request: InFlight = {
        interrupt,
        source,
        is_streamed,
        is_unhurried,
        giveUp,
        is_late: false,
        is_slow: false,
        arrived_ms,
        since_ms: arrived_ms,
        bytes: unseen,
        is_read: true,
        received_before: 0,
        held_up_ms: 0,
      }
      requests.add(request)
      return request
    },
    remove: (request) => {
      requests.delete(request)
    },
    count: () => requests.size,
  }
  return in_flight
})
