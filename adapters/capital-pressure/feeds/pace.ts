/** Limits the rate and concurrency of requests per host, and pauses hosts after a rejection. */
import { Clock, Effect, Semaphore } from "effect"

/** Concurrent requests per host. */
const concurrency_max = 2

interface Host {
  readonly permits: Semaphore.Semaphore
  /** When the next request may begin, in milliseconds of the clock. */
  next_at: number
  /** The end of the host's pause. */
  paused_until: number
}

export interface Pace {
  /** Runs `request` when the limits allow it. */
  readonly run: <A, E>(
    host: string,
    spacing_ms: number,
    request: Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** The rest of the host's pause; 0 if there is none. */
  readonly pauseOf: (host: string) => Effect.Effect<number>
  /** Pauses the host: requests fail at once until then. */
  readonly pause: (host: string, ms: number) => Effect.Effect<void>
}

export const makePace = (): Pace => {
  const hosts = new Map<string, Host>()
  const hostOf = (name: string) => {
    const known = hosts.get(name)
    if (known) return known
    const host = { permits: Semaphore.makeUnsafe(concurrency_max), next_at: 0, paused_until: 0 }
    hosts.set(name, host)
    return host
  }
  return {
    run: (name, spacing_ms, request) => {
      const host = hostOf(name)
      const wait = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const start = Math.max(now, host.next_at)
        host.next_at = start + spacing_ms
        return Effect.sleep(start - now)
      })
      return host.permits.withPermit(Effect.andThen(wait, request))
    },
    pauseOf: (name) =>
      Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, hostOf(name).paused_until - now)),
    pause: (name, ms) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const host = hostOf(name)
        host.paused_until = Math.max(host.paused_until, now + ms)
      }),
  }
}
