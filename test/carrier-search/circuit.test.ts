import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as circuits from "#actors/carrier-search/circuit.ts"
import { engineOver, even, fault, lived } from "./engine-given.ts"

const lost = (began: number, now: number): circuits.Failure => ({
  is_final: false,
  reason: "it is busy",
  began,
  now,
})
const final = (now: number): circuits.Failure => ({
  is_final: true,
  reason: "a bad key",
  began: now,
  now,
})

const failing = (failures: number) => {
  let circuit: circuits.Circuit = circuits.closed
  for (let n = 1; n <= failures; n += 1) circuit = circuits.failed(circuit, "free", lost(n, n))
  return circuit
}

const opened = circuits.failed(circuits.closed, "free", final(1000))

describe("the circuit", () => {
  it("opens at the 20th failure on end", () => {
    assert.strictEqual(failing(19).state, "closed")
    assert.strictEqual(failing(20).state, "open")
    const mended = circuits.succeeded(failing(19), "free")
    assert.strictEqual(circuits.failed(mended, "free", lost(99, 99)).state, "closed")
  })

  it("counts those once that were under way together", () => {
    let circuit: circuits.Circuit = circuits.closed
    for (let n = 1; n <= 100; n += 1) circuit = circuits.failed(circuit, "free", lost(5, 5 + n))
    assert.strictEqual(circuit.state, "closed")
  })

  it("opens at once for what is final", () => {
    assert.strictEqual(opened.state, "open")
  })

  it("lets one trial through at once, and closes when it is answered", () => {
    const [pass, trying] = circuits.admit(opened, 1000)
    assert.strictEqual(pass, "trial")
    assert.strictEqual(circuits.admit(trying, 1000)[0], "later")
    assert.strictEqual(circuits.succeeded(trying, "trial").state, "closed")
    assert.strictEqual(circuits.admit(circuits.abandoned(trying, "trial"), 1000)[0], "trial")
  })

  it("pauses for 1, 2, 4 ... at most 30 s after each trial that failed", () => {
    let [circuit, now]: [circuits.Circuit, number] = [opened, 1000]
    for (const pause_s of [1, 2, 4, 8, 16, 30, 30]) {
      const [pass, trying] = circuits.admit(circuit, now)
      assert.strictEqual(pass, "trial")
      circuit = circuits.failed(trying, "trial", final(now))
      assert.strictEqual(circuits.admit(circuit, now + pause_s * 1000 - 1)[0], "no")
      now += pause_s * 1000
    }
  })

  it("learns nothing of what began before it opened", () => {
    const [, trying] = circuits.admit(opened, 1000)
    for (const circuit of [opened, trying]) {
      assert.strictEqual(circuits.succeeded(circuit, "free"), circuit)
      assert.strictEqual(circuits.failed(circuit, "free", final(1001)), circuit)
      assert.strictEqual(circuits.abandoned(circuit, "free"), circuit)
    }
  })

  it.effect("lets a search through that comes when the registry is well again", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ instead: () => fault("final") }, { concurrency: 8 })
      const range = { start: 1, end: 100 }
      assert.match((yield* lived(Effect.flip(engine.run(range)))).reason, /^it is final$/)
      assert.isAtMost(engine.counts.total, 8)
      assert.strictEqual((yield* engine.health).detail, "it is final")
      engine.script = { latency_ms: () => 20 }
      const before = engine.counts.total
      // The first request is the trial; the others wait for its result.
      const fiber = yield* Effect.forkChild(engine.run(range))
      yield* TestClock.adjust(10)
      assert.strictEqual(engine.counts.total - before, 1)
      assert.lengthOf((yield* lived(Fiber.join(fiber))).trim().split("\r\n"), 50)
      assert.isNull((yield* engine.health).detail)
    }),
  )

  it.effect("costs one question per search while it is open, then none for a while", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ instead: () => fault("final") }, { concurrency: 8 })
      const refused = lived(Effect.flip(engine.run({ start: 1, end: 100 })))
      yield* refused
      const before = engine.counts.total
      yield* refused
      assert.strictEqual(engine.counts.total, before + 1)
      assert.match((yield* refused).reason, /^it is final; no requests are sent to it for 1 s$/)
      assert.strictEqual(engine.counts.total, before + 1)
      yield* TestClock.adjust("1 second")
      yield* refused
      assert.strictEqual(engine.counts.total, before + 2)
    }),
  )

  it.effect("runs a new trial if the last one was interrupted, or hit our own defect", () =>
    Effect.gen(function* () {
      const engine = yield* engineOver({ instead: () => fault("final") })
      yield* lived(Effect.flip(engine.run({ start: 1, end: 9 })))
      engine.script = { latency_ms: () => 60_000 }
      const fiber = yield* Effect.forkChild(engine.run({ start: 1, end: 9 }))
      yield* TestClock.adjust(10)
      yield* Fiber.interrupt(fiber)
      engine.script = { found: () => assert.fail("a defect") }
      yield* lived(Effect.exit(engine.run({ start: 1, end: 9 })))
      engine.script = { found: even }
      assert.match(yield* lived(engine.run({ start: 1, end: 9 })), /C8/)
    }),
  )
})
