/**
 * Deadlines of all requests in flight, kept by one sweep instead of a timer per request.
 *
 * A request that is not streamed has its time from the end of its body on. A stream, and a body on
 * its way, has it from the last byte that moved. An unhurried one has it on those two ways alone,
 * and only while its client does not take what is there: the rest may be long in the making.
 *
 * A body on its way also has a deadline in all, which grows with the bytes that came: a client that
 * sends a byte now and then holds a connection and a handler no longer than one that sends none.
 * Source: DECISIONS of document 1, limits not shown; decisions 0154 and 0186.
 */
import { Clock, Effect } from "effect"
import { type Progress, Transport } from "#gateway/transport.ts"
import type { Settings } from "#schemas/settings.ts"

export interface InFlight {
  /** Ends the request, and may be called again while it has not ended. */
  readonly interrupt: () => void
  readonly source: object
  /** Set when the answer turns out to be a stream. */
  is_streamed: boolean
  /** Whether its answer may take long, to begin and to go on. */
  readonly is_unhurried: boolean
  /** Set before the request is interrupted: the answer is 504, or 408 where it `is_slow`. */
  is_late: boolean
  /** Whether its body came too slowly. */
  is_slow: boolean
  /** Answers while the body is still to come: the interrupt then closes the connection. */
  readonly giveUp: () => void
  readonly arrived_ms: number
  since_ms: number
  bytes: number
  is_read: boolean
  /** What the connection had received when the first sweep saw this request. */
  received_before: number
  /** Milliseconds in which the body waited for this process. */
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

/** A deadline is met to a twentieth of itself, but no sweep comes more than 40 times a second. */
const sweeps_per_deadline = 20
const sweep_ms_min = 25
/** Short enough that a new setting of the deadline is seen soon. */
const sweep_ms_max = 1000
const ms_per_s = 1000

/** A body that is no stream may take ten deadlines in all, however fast it comes. */
const body_deadlines = 10

/** Most requests are gone before the first sweep: nothing is asked of them. */
const unseen = -1

export interface DeadlineSettings {
  readonly deadline_s: number
  /** The slowest that a body may come, after its first `deadline_s`; 0: as slow as it likes. */
  readonly body_bytes_per_s_min: number
}

/** What the settings say of deadlines. */
export const deadlinesOf = ({ api }: Settings): DeadlineSettings => ({
  deadline_s: api.request_timeout_seconds,
  body_bytes_per_s_min: api.body_bytes_per_second_min,
})

/** Whether a body came more slowly than it may; what this process held up does not count. */
const isTooSlow = (
  { is_streamed, arrived_ms, held_up_ms, received_before }: InFlight,
  received_bytes: number,
  now_ms: number,
  { deadline_s, body_bytes_per_s_min }: DeadlineSettings,
) => {
  const taken_s = (now_ms - arrived_ms) / ms_per_s
  if (!is_streamed && taken_s >= deadline_s * body_deadlines) return true
  if (body_bytes_per_s_min === 0) return false
  const earned_s = (received_bytes - received_before) / body_bytes_per_s_min
  return taken_s - held_up_ms / ms_per_s >= deadline_s + earned_s
}

interface Sweep {
  readonly now_ms: number
  /** Since the one before. */
  readonly swept_ago_ms: number
  readonly rules: DeadlineSettings
}

/** Notes how far a request has come since the last sweep; answers whether its time is over. */
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
  // Silence first: DECISIONS has 504 for that.
  if (now_ms - request.since_ms >= rules.deadline_s * ms_per_s) return true
  request.is_slow = !is_read && isTooSlow(request, received_bytes, now_ms, rules)
  return request.is_slow
}

/** Sweeps for as long as the scope lives; reads `settings` each time. */
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
        // It stands no longer in the way of those behind it.
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
    // One request that cannot be ended does not end the deadlines of all others.
    Effect.catchDefect((defect) => Effect.logError("A request could not be ended.", defect)),
    Effect.forever,
    Effect.forkScoped,
  )

  const kept: Deadlines = {
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
  return kept
})
