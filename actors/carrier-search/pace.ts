/** Paces lookups: limits their concurrency and rate, and observes pauses. */
import { Clock, Effect, Semaphore } from "effect"
import { aimd, type Heard, heed } from "#actors/carrier-search/aimd.ts"

export interface PaceOptions {
  /** Maximum number of concurrent lookups. */
  readonly concurrency: number
  /** Maximum number of lookups started per second; 0: unlimited. */
  readonly rate_per_second: number
}

export interface Pace {
  /** Runs lookups in the order of their calls. */
  readonly take: <A, E>(question: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Adapts the concurrency to an outcome. */
  readonly heard: (heard: Heard) => Effect.Effect<void>
  /** No lookup starts before this clock time, in milliseconds. */
  readonly rest: (until: number) => void
  /** The present maximum of concurrent lookups. */
  readonly limit: () => number
}

/** Timers are late by up to this many milliseconds; the following lookups catch up. */
const late_ms_max = 20

/** The longest requested pause that is honoured, in milliseconds. */
export const rest_ms_max = 30_000

export const makePace = ({ concurrency, rate_per_second }: PaceOptions): Pace => {
  const permits = Semaphore.makeUnsafe(concurrency)
  const turns = Semaphore.makeUnsafe(1)
  const spacing_ms = rate_per_second === 0 ? 0 : 1000 / rate_per_second
  let state = aimd(concurrency)
  let free_at = 0
  let rest_until = 0

  const begin = (now: number) => {
    free_at = Math.max(free_at, now - late_ms_max) + spacing_ms
  }
  const wait = turns.withPermit(
    Effect.gen(function* () {
      for (;;) {
        const now = yield* Clock.currentTimeMillis
        // If the clock was set back, nothing waits longer than intended.
        rest_until = Math.min(rest_until, now + rest_ms_max)
        free_at = Math.min(free_at, now + spacing_ms)
        const wait_ms = Math.max(free_at, rest_until) - now
        if (wait_ms <= 0) return begin(now)
        yield* Effect.sleep(Math.ceil(wait_ms))
      }
    }),
  )
  const turn = Effect.suspend(() => (spacing_ms === 0 && rest_until === 0 ? Effect.void : wait))
  return {
    take: (question) => permits.withPermit(Effect.andThen(turn, question)),
    heard: (heard) =>
      Effect.suspend(() => {
        const before = state.limit
        state = heed(state, heard)
        return state.limit === before ? Effect.void : permits.resize(state.limit)
      }),
    rest: (until) => {
      rest_until = Math.max(rest_until, until)
    },
    limit: () => state.limit,
  }
}
