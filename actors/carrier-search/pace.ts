/** How many questions are under way at once, how fast they follow, and pauses in between. */
import { Clock, Effect, Semaphore } from "effect"
import { aimd, type Heard, heed } from "#actors/carrier-search/aimd.ts"

export interface PaceOptions {
  /** At once, at most. */
  readonly concurrency: number
  /** Questions begun per second, at most; 0: any number. */
  readonly rate_per_second: number
}

export interface Pace {
  /** Asks when it is its turn, in the order of asking. */
  readonly take: <A, E>(question: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** An answer came: more or fewer are let under way from now on. */
  readonly heard: (heard: Heard) => Effect.Effect<void>
  /** No question begins before that time of the clock, in milliseconds. */
  readonly rest: (until: number) => void
  /** How many may be under way now. */
  readonly limit: () => number
}

/** Timers are late by this much, which the following questions make up for. In milliseconds. */
const late_ms_max = 20

/** The longest pause that a registry gets its way with, in milliseconds. */
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
        // A clock that was set back makes nobody wait for longer than was meant.
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
