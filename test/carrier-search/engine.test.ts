import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { mc_number_max, total } from "#schemas/carrier-search/carrier.ts"
import { type Docket, naively } from "../contract/registry.ts"
import { engineOver, even, fault, lived } from "./engine-given.ts"
import { drawn } from "./registry-fake.ts"

const docket = (mc: number): Docket => ({
  mc,
  dot: mc,
  name: `C${mc}`,
  active: true,
  carrier_only: mc % 2 === 0,
})

const world = fc.record({
  start: fc.integer({ min: 1, max: 1000 }),
  length: fc.integer({ min: 1, max: 300 }),
  concurrency: fc.integer({ min: 1, max: 40 }),
  rate_per_second: fc.constantFrom(0, 0, 200, 1000),
  shed_above: fc.constantFrom(Number.POSITIVE_INFINITY, 5, 20),
  seed: fc.integer(),
  share: fc.double({ min: 0, max: 0.4, noNaN: true }),
})

describe("the range engine", () => {
  it("answers as a client that asks one number after the other", () =>
    fc.assert(
      fc.asyncProperty(world, async ({ start, length, seed, share, ...more }) => {
        const { shed_above, concurrency } = more
        const range = { start, end: start + length - 1 }
        const kinds = ["busy", "broken", "refused"] as const
        const kind = kinds[Math.abs(seed) % kinds.length] ?? "busy"
        const script = {
          // From the third try on a number succeeds, unless it is shed.
          instead: (mc: number, nth: number) =>
            nth < 3 && drawn(seed, mc, nth) < share ? fault(kind) : undefined,
          latency_ms: (mc: number, nth: number) => Math.floor(drawn(seed, nth, mc) * 60),
          shed_above,
        }
        // The script does not limit shedding, so allow enough tries for the worst case.
        const options = { ...more, tries: 10, retry_percent: 1000 }
        const body = Effect.gen(function* () {
          const engine = yield* engineOver(script, options)
          const text = yield* lived(engine.run(range))
          assert.strictEqual(text, naively(dockets(range), range, "csv").text)
          assert.isAtMost(engine.counts.in_flight_max, concurrency)
          const faults = [...engine.requests].flatMap(([mc, requests]) =>
            Array.from({ length: requests }, (_, n) => script.instead(mc, n + 1)),
          )
          const bad = faults.filter((one) => one !== undefined).length
          assert.isAtMost(engine.counts.total, length + bad + engine.counts.shed)
        })
        await Effect.runPromise(Effect.scoped(Effect.provide(body, TestClock.layer())))
      }),
      { numRuns: 60 },
    ))

  it("fails for the whole range where one number is never answered", () =>
    fc.assert(
      fc.asyncProperty(
        fc.record({ length: fc.integer({ min: 1, max: 100 }), at: fc.nat(), seed: fc.integer() }),
        fc.constantFrom("busy", "broken", "refused", "final"),
        async ({ length, at, seed }, kind) => {
          const bad = 1 + (at % length)
          const script = {
            instead: (mc: number) => (mc === bad ? fault(kind) : undefined),
            latency_ms: (mc: number) => Math.floor(drawn(seed, mc) * 60),
          }
          const body = Effect.gen(function* () {
            const engine = yield* engineOver(script)
            const failed = yield* lived(Effect.flip(engine.run({ start: 1, end: length })))
            assert.deepEqual([failed.failed, failed.first], [1, bad])
            assert.match(failed.reason, new RegExp(`^it is ${kind}`))
            assert.strictEqual(engine.requests.get(bad), kind === "final" ? 1 : 4)
            assert.strictEqual(engine.counts.in_flight, 0)
          })
          await Effect.runPromise(Effect.scoped(Effect.provide(body, TestClock.layer())))
        },
      ),
      { numRuns: 40 },
    ))
  walking()
  ending()
  sharing()
})

const dockets = ({ start, end }: { readonly start: number; readonly end: number }) =>
  Array.from({ length: end - start + 1 }, (_, n) => docket(start + n))

const whole = { start: 1, end: mc_number_max }

const walking = () => {
  it.effect("asks for no more of the largest range than what is taken, and a little ahead", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({})
      let taken = 0
      const slowly = Stream.runForEach(engine.stream(whole, "csv"), ({ done }) => {
        taken = done
        return Effect.sleep("1 second")
      })
      const fiber = yield* Effect.forkChild(slowly)
      for (let n = 0; n < 5; n += 1) {
        yield* TestClock.adjust("1 second")
        assert.isAtMost(engine.counts.total, taken + 4096)
      }
      assert.isAbove(taken, 1)
      yield* Fiber.interrupt(fiber)
    }),
  )

  it.effect("gives each number out as soon as all before it are known", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ latency_ms: (mc) => (mc === 3 ? 1000 : 10) })
      let done = 0
      const search = engine.stream({ start: 1, end: 40 }, "csv")
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(search, (piece) =>
          Effect.sync(() => {
            done = piece.done
          }),
        ),
      )
      yield* TestClock.adjust(900)
      assert.strictEqual(done, 2)
      // The others continued meanwhile.
      assert.strictEqual(engine.counts.total, 40)
      yield* TestClock.adjust(200)
      assert.strictEqual(done, 40)
      yield* Fiber.join(fiber)
    }),
  )

  it.effect("does not hide what is wrong in itself", () =>
    Effect.gen(function* () {
      const found = (mc: number) => (mc === 5 ? assert.fail("a defect") : even(mc))
      const engine = yield* engineOver({ found })
      const exit = yield* lived(Effect.exit(engine.run({ start: 1, end: 40 })))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }),
  )
}

const ending = () => {
  it.effect("ends all questions at once when its reader goes, and asks no more", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ latency_ms: () => 500 }, { concurrency: 8 })
      const fiber = yield* Effect.forkChild(engine.run(whole))
      yield* TestClock.adjust(250)
      assert.strictEqual(engine.counts.in_flight, 8)
      yield* Fiber.interrupt(fiber)
      assert.deepEqual([engine.counts.in_flight, engine.counts.aborted], [0, 8])
      yield* TestClock.adjust(5000)
      assert.strictEqual(engine.counts.total, 8)
    }),
  )

  it.effect("ends the other questions as soon as one number failed, reader or not", () =>
    Effect.gen(function* () {
      const instead = (mc: number) => (mc === 2 ? fault("final") : undefined)
      const latency_ms = (mc: number) => (mc === 2 ? 100 : mc === 1 ? 20 : 60_000)
      const engine = yield* engineOver({ instead, latency_ms }, { concurrency: 8 })
      // The consumer takes one piece and then nothing.
      const search = Stream.runForEach(engine.stream(whole, "csv"), () => Effect.never)
      const fiber = yield* Effect.forkChild(search)
      yield* TestClock.adjust(90)
      assert.strictEqual(engine.counts.in_flight, 8)
      yield* TestClock.adjust(20)
      assert.deepEqual([engine.counts.in_flight, engine.counts.aborted], [0, 7])
      yield* Fiber.interrupt(fiber)
    }),
  )
}

const range = { start: 1, end: 200 }
const in_hand = 8
const taking = { latency_ms: (mc: number, nth: number) => 20 + Math.floor(drawn(mc, nth) * 60) }

const sharing = () => {
  it.effect("asks once for two equal searches at once", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver(taking)
      const both = Effect.all([engine.run(range), engine.run(range)], { concurrency: 2 })
      const [a, b] = yield* lived(both)
      assert.strictEqual(a, b)
      assert.strictEqual(engine.counts.total, total(range))
    }),
  )

  it.effect("asks for what lay before a later one, and shares the rest", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver(taking)
      const late = Effect.delay(engine.run(range), 500)
      const [a, b] = yield* lived(Effect.all([engine.run(range), late], { concurrency: 2 }))
      assert.strictEqual(a, b)
      // Of the requests that the first search holds, some are in flight and some wait for them.
      const before = engine.began.filter((at) => at < 500).length + in_hand
      assert.isAtMost(engine.counts.total, total(range) + before)
      assert.isAtMost(before, 60)
    }),
  )

  it.effect("sends new requests for a later search", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver(taking)
      yield* lived(engine.run(range))
      engine.script = { found: () => [] }
      assert.strictEqual(yield* lived(engine.run(range)), "")
      assert.strictEqual(engine.counts.total, 2 * total(range))
    }),
  )

  it.effect("goes on for the one where the other ends, and ends with the last", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ latency_ms: () => 500 })
      const [one, other] = [
        yield* Effect.forkChild(engine.run(range)),
        yield* Effect.forkChild(engine.run(range)),
      ]
      yield* TestClock.adjust(250)
      yield* Fiber.interrupt(one)
      assert.deepEqual([engine.counts.in_flight, engine.counts.aborted], [4, 0])
      yield* Fiber.interrupt(other)
      assert.deepEqual([engine.counts.in_flight, engine.counts.aborted], [0, 4])
      assert.strictEqual(engine.counts.total, 4)
    }),
  )

  it.effect("keeps answers for as long as is set, those of unknown numbers for a quarter", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({}, { cache_seconds: 100 })
      const counted = Effect.fnUntraced(function* () {
        const before = engine.counts.total
        yield* lived(engine.run({ start: 1, end: 10 }))
        return engine.counts.total - before
      })
      assert.strictEqual(yield* counted(), 10)
      assert.strictEqual(yield* counted(), 0)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* counted(), 5)
      yield* TestClock.adjust("80 seconds")
      assert.strictEqual(yield* counted(), 10)
    }),
  )
}
