/** Trace headers: valid ones, and the fallback for invalid ones. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, References } from "effect"
import { spanned, spannedFor, spanOf, traceNow, underTrace } from "#events/trace.ts"
import { collecting } from "./collecting.ts"

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
const other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

describe("a traceparent", () => {
  it("names a span and whether it is collected", () => {
    assert.strictEqual(spanOf(trace)?.sampled, true)
    assert.strictEqual(spanOf(trace.replace(/01$/, "00"))?.sampled, false)
  })

  const none = [
    "",
    "00",
    trace.toUpperCase(),
    `${trace}-x`,
    `ff${trace.slice(2)}`,
    ` ${trace}`,
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    undefined,
    7,
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
  ]
  for (const text of none) {
    it(`is not ${String(text).slice(0, 60)}`, () => assert.isUndefined(spanOf(text)))
  }
})

describe("work in a span", () => {
  it.effect("has its parent's trace, or the one that it is given", () =>
    Effect.gen(function* () {
      const { spans, tracer } = collecting()
      const inner = traceNow.pipe(spanned("inner"))
      const result = yield* inner.pipe(
        spanned("outer", { parent: trace }),
        Effect.withTracer(tracer),
      )
      const [outer, last] = spans
      assert.strictEqual(outer?.traceId, spanOf(trace)?.traceId)
      assert.strictEqual(result, `00-${outer?.traceId}-${last?.spanId}-01`)
    }),
  )

  it.effect("is recorded once in each trace whose commits it shows, and in no more than 32", () =>
    Effect.gen(function* () {
      const { spans, tracer } = collecting()
      const commits = [{ trace }, { trace }, {}, { trace: other }]
      yield* Effect.void.pipe(
        spannedFor("shown", () => commits),
        Effect.withTracer(tracer),
      )
      const traces = spans.map(({ traceId }) => traceId)
      assert.sameMembers(traces, [trace.slice(3, 35), other.slice(3, 35)])
      const many = Array.from({ length: 100 }, (_, n) => ({
        trace: `00-${String(n + 1).padStart(32, "0")}-00f067aa0ba902b7-01`,
      }))
      yield* Effect.void.pipe(
        spannedFor("shown", () => many),
        Effect.withTracer(tracer),
      )
      assert.strictEqual(spans.length, 2 + 32)
    }),
  )

  it.effect("creates and sends no spans without a collector", () =>
    Effect.gen(function* () {
      const { spans, tracer } = collecting()
      const attributes = () => {
        throw new Error("a span was requested")
      }
      const work = traceNow.pipe(spanned("a", { attributes }), spannedFor("b", attributes))
      assert.isUndefined(yield* underTrace(trace)(work))
      const off = Effect.provideService(References.TracerEnabled, false)
      assert.isUndefined(yield* underTrace(trace)(work).pipe(off, Effect.withTracer(tracer)))
      assert.deepEqual(spans, [])
    }),
  )
})
