/** How often and how many at once each host is asked, and which are left alone for a while. */
import { Clock, Effect, Semaphore } from "effect"

/** At once to one host. */
const at_once_max = 2

interface Host {
  readonly turns: Semaphore.Semaphore
  /** When the next request may begin, in milliseconds of the clock. */
  free_at: number
  /** Until when the host wants to be left alone. */
  rest_until: number
}

export interface Pace {
  /** Runs `request` when it is its turn. */
  readonly take: <A, E>(
    host: string,
    spacing_ms: number,
    request: Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** How long the host is still to be left alone; 0 where it may be asked. */
  readonly restOf: (host: string) => Effect.Effect<number>
  /** Leaves the host alone for so long: what is asked of it meanwhile fails at once. */
  readonly rest: (host: string, ms: number) => Effect.Effect<void>
}

export const makePace = (): Pace => {
  const hosts = new Map<string, Host>()
  const hostOf = (name: string) => {
    const known = hosts.get(name)
    if (known) return known
    const host = { turns: Semaphore.makeUnsafe(at_once_max), free_at: 0, rest_until: 0 }
    hosts.set(name, host)
    return host
  }
  return {
    take: (name, spacing_ms, request) => {
      const host = hostOf(name)
      const wait = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const start = Math.max(now, host.free_at)
        host.free_at = start + spacing_ms
        return Effect.sleep(start - now)
      })
      return host.turns.withPermit(Effect.andThen(wait, request))
    },
    restOf: (name) =>
      Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, hostOf(name).rest_until - now)),
    rest: (name, ms) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const host = hostOf(name)
        host.rest_until = Math.max(host.rest_until, now + ms)
      }),
  }
}
