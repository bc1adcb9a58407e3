/** What holding a lease is, wherever leases are kept: win, renew, stop in time, give back. */
import { Clock, Effect, Metric, Option, Random, Result, Schema, Semaphore } from "effect"
import { Unavailable } from "#actors/commands.ts"
import { Leases, Term } from "#actors/leases.ts"
import { StopDeadline } from "#processes"
import { counter, gauge } from "#schemas/metric.ts"

/** The store of leases did not answer: the lease may be ours or not. */
export class LeaseUnknown extends Schema.TaggedError<LeaseUnknown>()("LeaseUnknown", {
  detail: Schema.String,
}) {}

/** Names one change of a lease: who knows the last one may make the next. */
export type LeaseToken = number

/** Where leases are kept. Undefined: another holds it. */
export interface LeaseStore {
  /**
   * Takes a lease that is free, has run out, or is ours without our knowing; with `takeover` also
   * what another life of this holder has.
   */
  readonly take: (
    name: string,
    takeover: boolean,
  ) => Effect.Effect<LeaseToken | undefined, LeaseUnknown>
  /** Holds it for another TTL. */
  readonly renew: (
    name: string,
    token: LeaseToken,
  ) => Effect.Effect<LeaseToken | undefined, LeaseUnknown>
  /** Who holds it now; undefined: nobody. */
  readonly holderOf: (name: string) => Effect.Effect<string | undefined, LeaseUnknown>
  /** Frees it, if it is still ours. */
  readonly release: (name: string, token: LeaseToken) => Effect.Effect<void, LeaseUnknown>
}

export interface LeaseOptions {
  /** Who holds, the same after a restart: it takes over at once what its earlier life held. */
  readonly holder: string
  /** Milliseconds after which a lease that is not renewed is free; the bus wants 1,000 or more. */
  readonly ttl_ms: number
}

/** Renewals within a TTL: two of them may fail. */
const renewals_per_ttl = 3

/** Looks within a TTL whether a lease is free, by those who wait for it. */
const looks_per_ttl = 5

/** Tries to renew within a TTL, while the store does not answer. */
const tries_per_ttl = 20

/** Part of the TTL after which a question to the store is asked again: who answers may be gone. */
const answers_per_ttl = 4

/** Part of the TTL that a holder stops early: work needs time to end, and clocks run unevenly. */
const margin = 0.2

/** A lease that is held, and when the store was last asked for it, in monotonic milliseconds. */
interface Held {
  token: LeaseToken
  since: number
}

/** Leases over a store. Nothing but the local monotonic clock says how long one is held. */
export const leases = ({ ttl_ms }: LeaseOptions, store: LeaseStore) => {
  const inTime = answeredIn(ttl_ms / answers_per_ttl)
  const turnOf = turns()

  /**
   * Only the first look takes over: an earlier life is dead by then. A later one may have been
   * started by mistake beside us, and two that take over from each other would never end.
   */
  const looked = new Set<string>()

  const win = Effect.fnUntraced(function* (name: string) {
    for (;;) {
      const since = yield* now
      const token = yield* Effect.result(inTime(store.take(name, !looked.has(name))))
      if (Result.isSuccess(token)) looked.add(name)
      if (Result.isSuccess(token) && token.success !== undefined) {
        return { token: token.success, since }
      }
      // Spread, so that those who wait do not all ask at once.
      const spread = 0.5 + (yield* Random.next) / 2
      yield* Effect.sleep((ttl_ms / looks_per_ttl) * spread)
    }
  })

  /** Renews, and answers when the lease is lost: soon enough to stop before another has it. */
  const keep = Effect.fnUntraced(function* (name: string, held: Held) {
    let pause = ttl_ms / renewals_per_ttl
    for (;;) {
      const end = endOf(held, ttl_ms)
      yield* Effect.sleep(Math.max(0, Math.min(pause, end - (yield* now))))
      const since = yield* now
      if (since >= end) return
      const renewed = yield* inTime(store.renew(name, held.token)).pipe(
        Effect.result,
        Effect.timeoutOption(end - since),
      )
      if (Option.isNone(renewed)) return
      if (Result.isFailure(renewed.value)) pause = ttl_ms / tries_per_ttl
      else if (renewed.value.success === undefined) return
      else {
        held.token = renewed.value.success
        held.since = since
        pause = ttl_ms / renewals_per_ttl
      }
    }
  })

  const release = Effect.fnUntraced(function* (name: string, { token }: Held) {
    const wait_ms = yield* (yield* StopDeadline).part(ttl_ms)
    yield* store.release(name, token).pipe(Effect.timeoutOption(wait_ms), Effect.ignore)
  })

  /** One term as the holder: what `work` answered, or nothing when the lease was lost. */
  const term = <A, E, R>(name: string, work: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(win(name)), (held) =>
        restore(
          Effect.raceFirst(
            Effect.provideService(Effect.asSome(work), Term, termOf(held, ttl_ms)),
            Effect.as(keep(name, held), Option.none()),
          ),
        ).pipe(asHolder(name), Effect.ensuring(release(name, held))),
      ),
    )

  return Leases.of({
    holderOf: (name) =>
      Effect.mapError(inTime(store.holderOf(name)), ({ detail }) => new Unavailable({ detail })),
    hold: (name, elect, work) =>
      Effect.gen(function* () {
        for (;;) {
          const done = yield* term(name, Effect.flatMap(elect, work))
          if (Option.isSome(done)) return done.value
        }
      }).pipe(turnOf(name).withPermit),
  })
}

/** Two fibers of one process would be one holder to the store: here only one of them is it. */
const turns = () => {
  const taken = new Map<string, Semaphore.Semaphore>()
  return (name: string) => {
    const turn = taken.get(name) ?? Semaphore.makeUnsafe(1)
    taken.set(name, turn)
    return turn
  }
}

/** A change that was made unknown to us is found by the next question. */
const answeredIn =
  (ms: number) =>
  <A>(asking: Effect.Effect<A, LeaseUnknown>) =>
    Effect.timeoutOrElse(asking, {
      duration: ms,
      orElse: () => Effect.fail(new LeaseUnknown({ detail: "no answer in time" })),
    })

/** When it must be done with, in monotonic milliseconds. */
const endOf = ({ since }: Held, ttl_ms: number) => since + ttl_ms * (1 - margin)

const termOf = (held: Held, ttl_ms: number) => ({
  isOver: Effect.map(now, (time) => time >= endOf(held, ttl_ms)),
})

const held_gauge = gauge(
  "almanac_lease_held",
  "1 while this process holds the lease: over all processes the sum is 1.",
)
const terms_counter = counter("almanac_lease_terms_total", "Times that this process won the lease.")

/** Counts a term, and shows for as long as it lasts that this process is the holder. */
const asHolder = (lease: string) => {
  const gauge = Metric.withAttributes(held_gauge, { lease })
  return <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Metric.update(gauge, 1).pipe(
      Effect.andThen(Metric.update(Metric.withAttributes(terms_counter, { lease }), 1)),
      Effect.andThen(work),
      Effect.ensuring(Metric.update(gauge, 0)),
    )
}

const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1_000_000)
