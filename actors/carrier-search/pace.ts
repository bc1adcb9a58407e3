/** Paces lookups: limits their concurrency and rate, and observes pauses. */
import { Clock, Effect, Semaphore } from "effect"
import { adapt, aimd, type Outcome } from "#actors/carrier-search/aimd.ts"

export interface PaceOptions {
  /** Maximum number of concurrent lookups. */
  readonly concurrency: number
  /** Maximum number of lookups started per second; 0: unlimited. */
  readonly rate_per_second: number
}

export interface Pace {
  /** Runs lookups in the order of their calls. */
  readonly run: <A, E>(question: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Adapts the concurrency to an outcome. */
  readonly adapt: (outcome: Outcome) => Effect.Effect<void>
  /** No lookup starts before this clock time, in milliseconds. */
  readonly pauseUntil: (until: number) => void
  /** The current maximum number of concurrent lookups. */
  readonly limit: () => number
}

/** Timers are late by up to this many milliseconds; the following lookups catch up. */
const late_ms_max = 20

/** The longest requested pause that is honoured, in milliseconds. */
export const requested_pause_ms_max = 30_000

export const makePace = ({ concurrency, rate_per_second }: PaceOptions): Pace => {
  const permits = Semaphore.makeUnsafe(concurrency)
  const turns = Semaphore.makeUnsafe(1)
  const spacing_ms = rate_per_second === 0 ? 0 : 1000 / rate_per_second
  let state = aimd(concurrency)
  let next_start_at = 0
  let paused_until = 0

  const begin = (now: number) => {
    next_start_at = Math.max(next_start_at, now - late_ms_max) + spacing_ms
  }
  const wait = turns.withPermit(
    Effect.gen(function* () {
      for (;;) {
        const now = yield* Clock.currentTimeMillis
        // If the clock was set back, nothing waits longer than intended.
        paused_until = Math.min(paused_until, now + requested_pause_ms_max)
        next_start_at = Math.min(next_start_at, now + spacing_ms)
        const wait_ms = Math.max(next_start_at, paused_until) - now
        if (wait_ms <= 0) return begin(now)
        yield* Effect.sleep(Math.ceil(wait_ms))
      }
    }),
  )
  const turn = Effect.suspend(() => (spacing_ms === 0 && paused_until === 0 ? Effect.void : wait))
  return {
    run: (question) => permits.withPermit(Effect.andThen(turn, question)),
    adapt: (outcome) =>
      Effect.suspend(() => {
        const before = state.limit
        state = adapt(state, outcome)
        return state.limit === before ? Effect.void : permits.resize(state.limit)
      }),
    pauseUntil: (until) => {
      paused_until = Math.max(paused_until, until)
    },
    limit: () => state.limit,
  }
}
