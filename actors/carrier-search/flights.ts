/**
 * At most one lookup in flight per number, shared by all searches that need it. It is retried while
 * that may help, and interrupted when no search waits for it.
 */
import { Clock, Effect, Fiber, Random } from "effect"
import type { Answers } from "#actors/carrier-search/answers.ts"
import { type Found, type Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import { rest_ms_max } from "#actors/carrier-search/pace.ts"

/** A search that waits for lookups. */
export interface Asker {
  /** Its number in `Answers`. */
  readonly search: number
  /** Its remaining retries. */
  repeats: number
}

export interface Flights {
  /** The result for a number, from a lookup in flight or a new one. */
  readonly ask: (mc: number, asker: Asker) => ReturnType<Lookup>
}

export interface FlightOptions {
  /** Makes one attempt, in turn. */
  readonly lookup: Lookup
  readonly answers: Answers
  /** Maximum number of attempts per number. */
  readonly tries: number
}

interface Flight {
  readonly askers: Set<Asker>
  fiber: Fiber.Fiber<ReadonlyArray<Found>, LookupFailed> | undefined
}

/** Maximum of the first pause, in milliseconds; it doubles with each retry. */
const pause_ms = 100

/** Lookups live in this scope, not in the search that started them. */
export const makeFlights = Effect.fnUntraced(function* (options: FlightOptions) {
  const { answers } = options
  const flights = new Map<number, Flight>()
  const fork = Effect.runForkWith(yield* Effect.context<never>())

  const end = (mc: number, flight: Flight) => {
    if (flights.get(mc) === flight) flights.delete(mc)
  }

  const begin = (mc: number, asker: Asker) => {
    const flight: Flight = { askers: new Set([asker]), fiber: undefined }
    flights.set(mc, flight)
    const asked = answers.now()
    flight.fiber = fork(
      Effect.tap(insistently(mc, flight, options), (found) =>
        answers.isKept() ? keep(mc, found, asked) : Effect.void,
      ),
    )
    flight.fiber.addObserver(() => end(mc, flight))
    return flight
  }

  const keep = (mc: number, found: ReadonlyArray<Found>, asked: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => answers.keep(mc, found, asked, now))

  const leave = (mc: number, flight: Flight, asker: Asker) =>
    Effect.suspend(() => {
      flight.askers.delete(asker)
      if (flight.askers.size > 0 || !flight.fiber) return Effect.void
      // Later requests start a new lookup.
      end(mc, flight)
      return Fiber.interrupt(flight.fiber)
    })

  yield* Effect.addFinalizer(() =>
    Fiber.interruptAll([...flights.values()].flatMap(({ fiber }) => fiber ?? [])),
  )
  const ask: Flights["ask"] = (mc, asker) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const known = answers.find(mc, asker.search, now)
      if (known) return Effect.succeed(known)
      const under_way = flights.get(mc)
      under_way?.askers.add(asker)
      const flight = under_way ?? begin(mc, asker)
      // `begin` has set it.
      if (!flight.fiber) return Effect.die("a question without its fiber")
      return Effect.onInterrupt(Fiber.join(flight.fiber), () => leave(mc, flight, asker))
    })
  return { ask } satisfies Flights
})

const insistently = (mc: number, { askers }: Flight, { lookup, tries }: FlightOptions) => {
  const attempt = (tried: number): ReturnType<Lookup> =>
    Effect.catch(lookup(mc), (failure) => {
      const { kind, reason, after_ms = 0 } = failure
      if (kind === "final") return Effect.fail(failure)
      if (after_ms > rest_ms_max) return given(`${reason}, and wants to be left alone`)
      if (tried === tries) return given(tried === 1 ? reason : `${reason}, ${tried} times`)
      if (!mayRepeat(askers)) return given(`${reason}, and too many others failed before`)
      return Effect.flatMap(Random.next, (random) => {
        const jitter_ms = random * pause_ms * 2 ** (tried - 1)
        return Effect.delay(attempt(tried + 1), Math.max(after_ms, jitter_ms))
      })
    })
  return attempt(1)
}

/** Each waiting search pays with one of its retries; a single one is sufficient. */
const mayRepeat = (askers: ReadonlySet<Asker>) => {
  const able = [...askers].filter(({ repeats }) => repeats > 0)
  for (const asker of able) asker.repeats -= 1
  return able.length > 0
}

const given = (reason: string) => Effect.fail(new LookupFailed({ kind: "broken", reason }))
