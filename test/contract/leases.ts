/** Contract of every Leases adapter. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Schedule, type Scope } from "effect"
import { inTerm, type Leases, Term } from "#actors/leases.ts"

/** One holder's leases, and faults of its connection. */
export interface Holder {
  readonly leases: Leases["Service"]
  readonly cutOff: () => void
  readonly comeBack: () => void
}

/** Leases without a holder. */
export interface Place {
  readonly ttl_ms: number
  readonly holder: (id: string) => Effect.Effect<Holder, unknown, Scope.Scope>
}

type Test = (
  name: string,
  body: (place: Place) => Effect.Effect<void, unknown, Scope.Scope>,
) => void

/** Polls every 5 ms until the condition holds or the time is up. */
const within = (ms: number, condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced(5), times: ms / 5 }),
    Effect.tap((met) => Effect.sync(() => assert.isTrue(met, `not within ${ms} ms`))),
  )

/** Records who worked when, and marks workers that overlap. */
const work = () => {
  const log: Array<string> = []
  const working = new Set<string>()
  let elections = 0
  const elect = Effect.sync(() => ++elections)
  const start = (who: string, fence: number) =>
    Effect.sync(() => {
      log.push(`${who} ${fence}`)
      if (working.size > 0) log.push(`${who} while ${[...working].join()}`)
      working.add(who)
    })
  const stop = (who: string) => Effect.sync(() => working.delete(who))
  /** Holds the lease until `ends`, and records it as `who`. */
  const hold = ({ leases }: Holder, who: string, ends: Effect.Effect<unknown> = Effect.never) =>
    leases.hold("work", elect, (fence) =>
      Effect.ensuring(Effect.andThen(start(who, fence), ends), stop(who)),
    )
  return { log, working, hold }
}

export const leasesContract = (test: Test) => {
  test("of two holders one works, for longer than a TTL", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      for (const id of ["one", "other"]) {
        yield* Effect.forkScoped(hold(yield* place.holder(id), id))
      }
      yield* within(place.ttl_ms, () => working.size === 1)
      yield* Effect.exit(within(place.ttl_ms * 2.5, () => log.length > 1))
      assert.strictEqual(log.length, 1, log.join())
    }))

  test("when work ends the lease is free at once, and the answer is the work's", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      const other = yield* place.holder("other")
      const ending = yield* Effect.forkScoped(hold(one, "one", Effect.succeed("done")))
      assert.strictEqual(yield* Fiber.join(ending), "done")
      yield* Effect.forkScoped(hold(other, "other"))
      yield* within(place.ttl_ms / 2, () => working.has("other"))
      assert.deepEqual(log, ["one 1", "other 2"])
    }))

  test("reports the holder of a lease to every process, and a free lease as free", (place) =>
    Effect.gen(function* () {
      const { working, hold } = work()
      const one = yield* place.holder("one")
      const other = yield* place.holder("other")
      const holderOf = ({ leases }: typeof one, name: string) => Effect.orDie(leases.holderOf(name))
      assert.isUndefined(yield* holderOf(other, "work"))
      const holding = yield* Effect.forkScoped(hold(one, "one"))
      yield* within(place.ttl_ms, () => working.has("one"))
      const holders = [yield* holderOf(one, "work"), yield* holderOf(other, "work")]
      assert.deepEqual(holders, ["one", "one"])
      assert.isUndefined(yield* holderOf(other, "another"))
      yield* Fiber.interrupt(holding)
      assert.isUndefined(yield* holderOf(other, "work"))
    }))

  test("failed work frees the lease and returns its error; so does an election", (place) =>
    Effect.gen(function* () {
      const { leases } = yield* place.holder("one")
      const { working, hold } = work()
      const failing = leases.hold("work", Effect.succeed(1), () => Effect.fail("broken"))
      assert.strictEqual(yield* Effect.flip(failing), "broken")
      const unelected = leases.hold("work", Effect.fail("no log"), () => Effect.never)
      assert.strictEqual(yield* Effect.flip(unelected), "no log")
      yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      yield* within(place.ttl_ms / 2, () => working.has("other"))
    }))

  test("who is interrupted while it works hands over at once", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* Effect.forkScoped(hold(yield* place.holder("one"), "one"))
      yield* within(place.ttl_ms, () => working.has("one"))
      yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      yield* Fiber.interrupt(one)
      yield* within(place.ttl_ms / 2, () => working.has("other"))
      assert.deepEqual(log, ["one 1", "other 2"])
    }))

  test("who is cut off stops before another starts, which is soon after the TTL", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      yield* Effect.forkScoped(hold(one, "one"))
      yield* within(place.ttl_ms, () => working.has("one"))
      yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      one.cutOff()
      yield* within(place.ttl_ms * 2.5, () => working.has("other"))
      assert.deepEqual(log, ["one 1", "other 2"])
    }))

  test("work that does not end in time may send nothing more before another works", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      const tells = (what: string) => inTerm(Effect.sync(() => log.push(what)))
      // Ignores interruption until its term is over, like a process that is suspended.
      const deaf = Effect.gen(function* () {
        yield* Effect.orDie(tells("sent"))
        const { isOver } = yield* Term
        yield* Effect.repeat(isOver, { until: (over) => over, schedule: Schedule.spaced(5) })
        const refused = yield* Effect.result(tells("sent late"))
        yield* Effect.sync(() => log.push(refused._tag))
      })
      yield* Effect.forkScoped(hold(one, "one", Effect.uninterruptible(deaf)))
      yield* within(place.ttl_ms, () => working.has("one"))
      yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      one.cutOff()
      yield* within(place.ttl_ms * 2.5, () => working.has("other"))
      assert.deepEqual(log, ["one 1", "sent", "Failure", "other 2"])
    }))

  test("who was cut off waits for its next turn, under a new fence", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      yield* Effect.forkScoped(hold(one, "one"))
      yield* within(place.ttl_ms, () => working.has("one"))
      const other = yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      one.cutOff()
      yield* within(place.ttl_ms * 2.5, () => working.has("other"))
      one.comeBack()
      yield* Fiber.interrupt(other)
      yield* within(place.ttl_ms * 2, () => working.has("one"))
      assert.deepEqual(log, ["one 1", "other 2", "one 3"])
    }))

  test("a short loss of the connection does not end the work", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      yield* Effect.forkScoped(hold(one, "one"))
      yield* within(place.ttl_ms, () => working.has("one"))
      yield* Effect.forkScoped(hold(yield* place.holder("other"), "other"))
      one.cutOff()
      yield* Effect.exit(within(place.ttl_ms / 10, () => log.length > 1))
      one.comeBack()
      yield* Effect.exit(within(place.ttl_ms * 2, () => log.length > 1))
      assert.deepEqual(log, ["one 1"])
    }))

  test("a restarted holder takes its own lease over without waiting for the TTL", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const dead = yield* place.holder("one")
      yield* Effect.forkScoped(hold(dead, "before"))
      yield* within(place.ttl_ms, () => working.has("before"))
      const since = performance.now()
      dead.cutOff()
      working.clear()
      dead.comeBack()
      yield* Effect.forkScoped(hold(yield* place.holder("one"), "after"))
      yield* within(place.ttl_ms, () => working.has("after"))
      assert.isBelow(performance.now() - since, place.ttl_ms * 0.6)
      yield* Effect.exit(within(place.ttl_ms * 1.5, () => log.length > 2))
      assert.strictEqual(log.join(), "before 1,after 2")
    }))

  test("two fibers of one holder are two to each other", (place) =>
    Effect.gen(function* () {
      const { log, working, hold } = work()
      const one = yield* place.holder("one")
      const first = yield* Effect.forkScoped(hold(one, "first"))
      yield* within(place.ttl_ms, () => working.has("first"))
      yield* Effect.forkScoped(hold(one, "second"))
      yield* Effect.exit(within(place.ttl_ms * 1.5, () => log.length > 1))
      assert.deepEqual(log, ["first 1"])
      yield* Fiber.interrupt(first)
      yield* within(place.ttl_ms, () => working.has("second"))
    }))

  test("leases of different names can be held at the same time", (place) =>
    Effect.gen(function* () {
      const { leases } = yield* place.holder("one")
      const both = leases.hold("first", Effect.succeed(1), (one) =>
        leases.hold("second", Effect.succeed(2), (two) => Effect.succeed(one + two)),
      )
      const exit = yield* Effect.exit(both)
      assert.isTrue(Exit.isSuccess(exit) && exit.value === 3)
    }))
}
