/** Lease protocol, independent of the store: acquire, renew, stop in time, release. */
import { Clock, Effect, Metric, Option, Random, Result, Schema, Semaphore } from "effect"
import { Unavailable } from "#actors/commands.ts"
import { Leases, Term } from "#actors/leases.ts"
import { StopDeadline } from "#processes"
import { counter, gauge } from "#schemas/metric.ts"

/** The lease store did not respond; it is unknown whether this process holds the lease. */
export class LeaseUnknown extends Schema.TaggedError<LeaseUnknown>()("LeaseUnknown", {
  detail: Schema.String,
}) {}

/** Version of a lease: the holder of the last version may write the next. */
export type LeaseToken = number

/** A lease store. `undefined` means that another process holds the lease. */
export interface LeaseStore {
  /**
   * Acquires a lease that is free, expired, or already ours after a lost response; with `takeover`
   * also one held by an earlier process of this holder.
   */
  readonly take: (
    name: string,
    takeover: boolean,
  ) => Effect.Effect<LeaseToken | undefined, LeaseUnknown>
  /** Extends it by another TTL. */
  readonly renew: (
    name: string,
    token: LeaseToken,
  ) => Effect.Effect<LeaseToken | undefined, LeaseUnknown>
  /** The current holder, if any. */
  readonly holderOf: (name: string) => Effect.Effect<string | undefined, LeaseUnknown>
  /** Releases it if it is still ours. */
  readonly release: (name: string, token: LeaseToken) => Effect.Effect<void, LeaseUnknown>
}

export interface LeaseOptions {
  /** Stable name of the holder: after a restart it takes over its earlier leases immediately. */
  readonly holder: string
  /** Milliseconds after which a lease that is not renewed expires; the bus requires 1,000. */
  readonly ttl_ms: number
}

/** Renewals within a TTL: two of them may fail. */
const renewals_per_ttl = 3

/** Attempts to acquire a lease per TTL. */
const attempts_per_ttl = 5

/** Retries of a renewal per TTL, while the store does not respond. */
const retries_per_ttl = 20

/** Divisor of the TTL that gives the timeout of one request to the store. */
const timeouts_per_ttl = 4

/** Fraction of the TTL by which a holder stops early, for its work to end and for clock drift. */
const margin = 0.2

/** A held lease and the start of its last renewal, in monotonic milliseconds. */
interface HeldLease {
  token: LeaseToken
  since: number
}

/** Leases over a store. Expiry depends only on the local monotonic clock. */
export const leases = ({ ttl_ms }: LeaseOptions, store: LeaseStore) => {
  const inTime = withTimeout(ttl_ms / timeouts_per_ttl)
  const mutexOf = leaseMutexes()

  /**
   * Only the first attempt takes over, when an earlier process is dead. Later there may be a second
   * process with the same name by mistake, and two takeovers would alternate forever.
   */
  const attempted = new Set<string>()

  const acquire = Effect.fnUntraced(function* (name: string) {
    for (;;) {
      const since = yield* now
      const token = yield* Effect.result(inTime(store.take(name, !attempted.has(name))))
      if (Result.isSuccess(token)) attempted.add(name)
      if (Result.isSuccess(token) && token.success !== undefined) {
        return { token: token.success, since }
      }
      // Jitter, so that waiting processes do not all retry at once.
      const jitter = 0.5 + (yield* Random.next) / 2
      yield* Effect.sleep((ttl_ms / attempts_per_ttl) * jitter)
    }
  })

  /** Renews until the lease is lost; completes early enough to stop before another holds it. */
  const renewUntilLost = Effect.fnUntraced(function* (name: string, held: HeldLease) {
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
      if (Result.isFailure(renewed.value)) pause = ttl_ms / retries_per_ttl
      else if (renewed.value.success === undefined) return
      else {
        held.token = renewed.value.success
        held.since = since
        pause = ttl_ms / renewals_per_ttl
      }
    }
  })

  const release = Effect.fnUntraced(function* (name: string, { token }: HeldLease) {
    const wait_ms = yield* (yield* StopDeadline).part(ttl_ms)
    yield* store.release(name, token).pipe(Effect.timeoutOption(wait_ms), Effect.ignore)
  })

  /** One term as the holder: the result of `work`, or none if the lease was lost. */
  const term = <A, E, R>(name: string, work: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(acquire(name)), (held) =>
        restore(
          Effect.raceFirst(
            Effect.provideService(Effect.asSome(work), Term, termOf(held, ttl_ms)),
            Effect.as(renewUntilLost(name, held), Option.none()),
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
      }).pipe(mutexOf(name).withPermit),
  })
}

/** Local mutex per lease: to the store two fibers of one process are the same holder. */
const leaseMutexes = () => {
  const mutexes = new Map<string, Semaphore.Semaphore>()
  return (name: string) => {
    const mutex = mutexes.get(name) ?? Semaphore.makeUnsafe(1)
    mutexes.set(name, mutex)
    return mutex
  }
}

/** Applies a timeout; the next request detects a change whose response was lost. */
const withTimeout =
  (ms: number) =>
  <A>(request: Effect.Effect<A, LeaseUnknown>) =>
    Effect.timeoutOrElse(request, {
      duration: ms,
      orElse: () => Effect.fail(new LeaseUnknown({ detail: "no response in time" })),
    })

/** End of the holder's term, in monotonic milliseconds. */
const endOf = ({ since }: HeldLease, ttl_ms: number) => since + ttl_ms * (1 - margin)

const termOf = (held: HeldLease, ttl_ms: number) => ({
  isOver: Effect.map(now, (time) => time >= endOf(held, ttl_ms)),
})

const held_gauge = gauge(
  "almanac_lease_held",
  "1 while this process holds the lease; the sum over all processes is 1.",
)
const terms_counter = counter(
  "almanac_lease_terms_total",
  "Number of times this process acquired the lease.",
)

/** Metrics of a term: counts it, and sets the gauge while it lasts. */
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
