import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { type Aimd, adapt, aimd, type Outcome } from "#actors/carrier-search/aimd.ts"
import { engineOver, fault, lived } from "./engine-given.ts"

const good = (began: number, now = began + 10): Outcome => ({ began, now, answer: "good" })
const busy = (began: number, now = began + 10): Outcome => ({ began, now, answer: "busy" })

const heard = (state: Aimd, times: number, one: (n: number) => Outcome): Aimd => {
  let next = state
  for (let n = 0; n < times; n += 1) next = adapt(next, one(n))
  return next
}

describe("how many are under way at once", () => {
  it("is the cap at first, and half of it when the registry refuses", () => {
    assert.strictEqual(aimd(32).limit, 32)
    assert.strictEqual(adapt(aimd(32), { began: 0, now: 1, answer: "refused" }).limit, 16)
  })

  it("is halved by the second busy answer of 20, not by one", () => {
    const once = adapt(aimd(32), busy(0))
    assert.strictEqual(once.limit, 32)
    assert.strictEqual(adapt(once, busy(1)).limit, 16)
    assert.strictEqual(adapt(heard(once, 18, good), busy(1)).limit, 16)
    assert.strictEqual(adapt(heard(once, 19, good), busy(1)).limit, 32)
  })

  it("is halved once by a burst", () => {
    assert.strictEqual(heard(aimd(32), 30, (n) => busy(0, 10 + n)).limit, 16)
  })

  it("never falls below one", () => {
    assert.strictEqual(heard(aimd(32), 100, (n) => busy(n * 100)).limit, 1)
  })

  it("grows by one after each 50 good answers, up to the cap", () => {
    const half = adapt(aimd(4), { began: 0, now: 1, answer: "refused" })
    const steps = [49, 50, 99, 100, 500].map((times) => heard(half, times, good).limit)
    assert.deepEqual(steps, [2, 3, 3, 4, 4])
  })

  it("is halved when the p95 doubles, once, and what stays slow is usual", () => {
    const usual = heard(aimd(32), 200, (n) => good(n * 100, n * 100 + 60))
    const slow = heard(usual, 100, (n) => good(50_000 + n * 100, 50_000 + n * 100 + 200))
    assert.strictEqual(slow.limit, 16)
    const later = (n: number) => good(100_000 + n * 100, 100_000 + n * 100 + 200)
    assert.strictEqual(heard(slow, 800, later).limit, 32)
  })

  it("is not halved by a few slow answers, nor by a little unrest", () => {
    const usual = heard(aimd(32), 200, (n) => good(n * 100, n * 100 + 10))
    const few = heard(usual, 100, (n) => good(n * 100, n * 100 + (n % 25 === 0 ? 900 : 10)))
    assert.strictEqual(few.limit, 32)
    assert.strictEqual(heard(usual, 100, (n) => good(n * 100, n * 100 + 50)).limit, 32)
  })

  it("stays between one and the cap, for all outcomes", () => {
    const answer = fc.constantFrom("good" as const, "busy" as const, "refused" as const)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 256 }), fc.array(answer), (cap, answers) => {
        const end = answers.reduce(
          (state, one, n) => adapt(state, { began: n * 10, now: n * 10 + 5, answer: one }),
          aimd(cap),
        )
        assert.isTrue(end.limit >= 1 && end.limit <= cap)
      }),
    )
  })
})

const range = { start: 1, end: 60 }

describe("the pace", () => {
  it.effect("begins no more per second than is set", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ latency_ms: () => 300 }, { rate_per_second: 10 })
      const both = [engine.run(range), engine.run({ start: 101, end: 130 })]
      yield* lived(Effect.all(both, { concurrency: 2 }))
      assert.strictEqual(engine.counts.total, 90)
      const most = Math.max(
        ...engine.began.map((at) => engine.began.filter((b) => b >= at && b < at + 1000).length),
      )
      assert.isTrue(most === 10 || most === 11, `${most} in a second`)
    }),
  )

  it.effect("is not lost with a search that ends while it waits", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({}, { rate_per_second: 1 })
      yield* Effect.ignore(lived(Effect.timeout(engine.run(range), 2500)))
      const before = engine.began.length
      yield* lived(engine.run({ start: 200, end: 202 }))
      const [first = 0, second = 0] = engine.began.slice(before)
      assert.isAtMost(first, 3100)
      assert.isAtLeast(second - first, 950)
    }),
  )

  it.effect("holds all questions back for as long as Retry-After says", () =>
    Effect.gen(function* () {
      const instead = (mc: number, nth: number) =>
        mc === 3 && nth === 1 ? fault("refused", 7000) : undefined
      const engine = yield* engineOver({ instead, latency_ms: () => 100 })
      yield* lived(engine.run(range))
      const early = engine.began.filter((at) => at < 7000)
      // Four at once, plus some that followed those answered at the same time.
      assert.isAtMost(early.length, 8)
      assert.strictEqual(engine.counts.total, 61)
      assert.strictEqual(engine.requests.get(3), 2)
    }),
  )

  it.effect("does not wait for a registry that asks for a pause for long", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ instead: () => fault("busy", 31_000) })
      const failed = yield* lived(Effect.flip(engine.run(range)))
      assert.match(failed.reason, /requested pause is too long/)
      assert.isAtMost(engine.counts.total, 4)
    }),
  )

  it.effect("pauses between the tries of a number, ever longer, at random", () =>
    Effect.gen(function* () {
      const latest: Array<number> = []
      for (let run = 0; run < 30; run += 1) {
        const engine = yield* engineOver({ instead: () => fault("broken") })
        yield* lived(Effect.flip(engine.run({ start: 1, end: 1 })))
        const [a = 0, b = 0, c = 0, d = 0] = engine.began
        for (const [pause, most] of [[b - a, 100] as const, [c - b, 200], [d - c, 400] as const]) {
          assert.isAtMost(pause, (most ?? 0) + 10)
        }
        latest.push(d - c)
      }
      assert.isAbove(Math.max(...latest), 200)
      assert.isAbove(new Set(latest).size, 5)
    }),
  )

  it.effect("spends no more repeats on a search than a part of its numbers, at least 20", () =>
    Effect.gen(function* () {
      const once = {
        instead: (_: number, nth: number) => (nth === 1 ? fault("broken") : undefined),
      }
      const repeatsOf = Effect.fnUntraced(function* (length: number) {
        const engine = yield* engineOver(once, { retry_percent: 10, concurrency: 1 })
        const failed = yield* lived(Effect.flip(engine.run({ start: 1, end: length })))
        assert.match(failed.reason, /it is broken, and the search has used up its retries/)
        return [...engine.requests.values()].reduce((sum, times) => sum + times - 1, 0)
      })
      // A granted retry may still be waiting for its delay when the search fails.
      const [few_spent, many_spent] = [yield* repeatsOf(100), yield* repeatsOf(400)]
      assert.isTrue(few_spent >= 18 && few_spent <= 20, `${few_spent} of 20`)
      assert.isTrue(many_spent >= 38 && many_spent <= 40, `${many_spent} of 40`)
      const few = yield* engineOver(once, { retry_percent: 0 })
      yield* lived(few.run({ start: 1, end: 20 }))
    }),
  )

  it.effect("loses no number to a registry that sheds load, for few questions more", () =>
    Effect.gen(function* () {
      const latency_ms = (mc: number) => 100 + (mc % 7) * 30
      const script = { latency_ms, shed_above: 12 }
      const engine = yield* engineOver(script, { concurrency: 32 })
      const text = yield* lived(engine.run({ start: 1, end: 2000 }))
      assert.lengthOf(text.trim().split("\r\n"), 1000)
      assert.isAtMost(engine.counts.total, 2000 * 1.03)
      assert.isAtMost(engine.counts.in_flight_max, 32)
    }),
  )
})
