/**
 * Deadlines of all requests in flight, kept by one sweep instead of a timer per request.
 *
 * A request that is not streamed has its time from the end of its body on. A stream, and a body on
 * its way, has it from the last byte that moved. An unhurried one has it on those two ways alone,
 * and only while its client does not take what is there: the rest may be long in the making.
 * Source: DECISIONS of document 1, limits not shown; decision 0154.
 */
import { Clock, Effect } from "effect"
import { Transport } from "#gateway/transport.ts"

export interface InFlight {
  /** Ends the request, and may be called again while it has not ended. */
  readonly interrupt: () => void
  readonly source: object
  /** Set when the answer turns out to be a stream. */
  is_streamed: boolean
  /** Whether its answer may take long, to begin and to go on. */
  readonly is_unhurried: boolean
  /** Set before the request is interrupted: the answer is 504. */
  is_late: boolean
  /** Answers 504 while the body is still to come: the interrupt then closes the connection. */
  readonly giveUp: () => void
  readonly arrived_ms: number
  since_ms: number
  bytes: number
  is_read: boolean
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

/** A body that is no stream may take ten deadlines in all, however steadily it drips. */
const body_deadlines = 10

/** Most requests are gone before the first sweep: nothing is asked of them. */
const unseen = -1

/** Sweeps for as long as the scope lives; `deadlineSeconds` is asked anew each time. */
export const deadlines = Effect.fnUntraced(function* (deadlineSeconds: () => number) {
  const { progressOf } = yield* Transport
  const clock = yield* Clock.Clock
  const requests = new Set<InFlight>()

  const sweep = () => {
    const now_ms = clock.currentTimeMillisUnsafe()
    const deadline_ms = deadlineSeconds() * 1000
    for (const request of requests) {
      const was_late = request.is_late
      if (!was_late) request.is_late = isLate(request, now_ms, deadline_ms)
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

  const isLate = (request: InFlight, now_ms: number, deadline_ms: number) => {
    const { bytes, is_read, is_taken } = progressOf(request.source)
    const is_first = request.bytes === unseen
    const is_awaited = request.is_unhurried && is_read && (!request.is_streamed || is_taken)
    const is_moving = request.is_streamed || !is_read
    const has_moved = is_awaited || (is_moving ? bytes !== request.bytes : !request.is_read)
    request.bytes = bytes
    request.is_read = is_read
    if (has_moved && !is_first) request.since_ms = now_ms
    const is_dripping = !request.is_streamed && !is_read
    if (is_dripping && now_ms - request.arrived_ms >= deadline_ms * body_deadlines) return true
    return now_ms - request.since_ms >= deadline_ms
  }

  const pause = () =>
    Math.min(sweep_ms_max, Math.max(sweep_ms_min, (deadlineSeconds() * 1000) / sweeps_per_deadline))
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
        arrived_ms,
        since_ms: arrived_ms,
        bytes: unseen,
        is_read: true,
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
