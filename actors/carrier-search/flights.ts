/**
 * At most one lookup in flight per number, shared by all searches that need it. It is retried while
 * that may help, and interrupted when no search waits for it.
 */
import { Clock, Effect, Fiber, Random } from "effect"
import { type FoundCarrier, type Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import type { LookupCache } from "#actors/carrier-search/lookup-cache.ts"
import { requested_pause_ms_max } from "#actors/carrier-search/pace.ts"

/** A search that waits for lookups. */
export interface Waiter {
  /** Its number in `LookupCache`. */
  readonly search: number
  /** Its remaining retries. */
  retries: number
}

export interface Flights {
  /** The result for a number, from a lookup in flight or a new one. */
  readonly lookUp: (mc: number, waiter: Waiter) => ReturnType<Lookup>
}

export interface FlightOptions {
  /** Makes one attempt, in turn. */
  readonly lookup: Lookup
  readonly cache: LookupCache
  /** Maximum number of attempts per number. */
  readonly tries: number
}

interface Flight {
  readonly waiters: Set<Waiter>
  fiber: Fiber.Fiber<ReadonlyArray<FoundCarrier>, LookupFailed> | undefined
}

/** Maximum of the first pause, in milliseconds; it doubles with each retry. */
const pause_ms = 100

/** Lookups live in this scope, not in the search that started them. */
export const makeFlights = Effect.fnUntraced(function* (options: FlightOptions) {
  const { cache } = options
  const flights = new Map<number, Flight>()
  const fork = Effect.runForkWith(yield* Effect.context<never>())

  const end = (mc: number, flight: Flight) => {
    if (flights.get(mc) === flight) flights.delete(mc)
  }

  const begin = (mc: number, waiter: Waiter) => {
    const flight: Flight = { waiters: new Set([waiter]), fiber: undefined }
    flights.set(mc, flight)
    const last_search = cache.lastSearch()
    flight.fiber = fork(
      Effect.tap(withRetries(mc, flight, options), (found) =>
        cache.isReusable() ? cacheResult(mc, found, last_search) : Effect.void,
      ),
    )
    flight.fiber.addObserver(() => end(mc, flight))
    return flight
  }

  const cacheResult = (mc: number, found: ReadonlyArray<FoundCarrier>, last_search: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => cache.add(mc, found, last_search, now))

  const leave = (mc: number, flight: Flight, waiter: Waiter) =>
    Effect.suspend(() => {
      flight.waiters.delete(waiter)
      if (flight.waiters.size > 0 || !flight.fiber) return Effect.void
      // Later requests start a new lookup.
      end(mc, flight)
      return Fiber.interrupt(flight.fiber)
    })

  yield* Effect.addFinalizer(() =>
    Fiber.interruptAll([...flights.values()].flatMap(({ fiber }) => fiber ?? [])),
  )
  const lookUp: Flights["lookUp"] = (mc, waiter) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const known = cache.find(mc, waiter.search, now)
      if (known) return Effect.succeed(known)
      const in_flight = flights.get(mc)
      in_flight?.waiters.add(waiter)
      const flight = in_flight ?? begin(mc, waiter)
      // `begin` has set it.
      if (!flight.fiber) return Effect.die("a lookup without its fiber")
      return Effect.onInterrupt(Fiber.join(flight.fiber), () => leave(mc, flight, waiter))
    })
  return { lookUp } satisfies Flights
})

const withRetries = (mc: number, { waiters }: Flight, { lookup, tries }: FlightOptions) => {
  const attempt = (attempt_number: number): ReturnType<Lookup> =>
    Effect.catch(lookup(mc), (failure) => {
      const { kind, reason, after_ms = 0 } = failure
      if (kind === "final") return Effect.fail(failure)
      if (after_ms > requested_pause_ms_max) return brokenLookup(`${reason}, and asks for a pause`)
      if (attempt_number === tries)
        return brokenLookup(
          attempt_number === 1 ? reason : `${reason}, in ${attempt_number} attempts`,
        )
      if (!spendRetry(waiters))
        return brokenLookup(`${reason}, and the search has used up its retries`)
      return Effect.flatMap(Random.next, (random) => {
        const jitter_ms = random * pause_ms * 2 ** (attempt_number - 1)
        return Effect.delay(attempt(attempt_number + 1), Math.max(after_ms, jitter_ms))
      })
    })
  return attempt(1)
}

/** Charges the retry to every waiting search with retries left; false if there is none. */
const spendRetry = (waiters: ReadonlySet<Waiter>) => {
  const with_retries = [...waiters].filter(({ retries }) => retries > 0)
  for (const waiter of with_retries) waiter.retries -= 1
  return with_retries.length > 0
}

const brokenLookup = (reason: string) => Effect.fail(new LookupFailed({ kind: "broken", reason }))
