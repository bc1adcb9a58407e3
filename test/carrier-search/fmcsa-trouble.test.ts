import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Logger, Stream } from "effect"
import { Registry } from "#actors/carrier-search/registry.ts"
import { registryFmcsa } from "#adapters/carrier-search/registry-fmcsa.ts"
import { searched } from "../contract/registry.ts"
import { optionsAt } from "./fmcsa-given.ts"
import * as answers from "./registry-answers.ts"
import { drawn, fake_key, heavyTail, registryFake } from "./registry-fake.ts"

const range = { start: 1, end: 400 }

const docket = (mc: number) => ({
  mc,
  dot: mc,
  name: `C${mc}`,
  active: true,
  carrier_only: mc % 4 === 0,
})

describe("FMCSA in trouble", () => {
  it.live("sheds load, and no number is lost for at most 3% more requests", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({
        dockets: (mc) => [docket(mc)],
        latency_ms: heavyTail(8, 7),
        shed_above: 10,
        instead: (mc, nth) =>
          nth === 1 && drawn(9, mc) < 0.01 ? { status: 503, body: "{}" } : undefined,
      })
      const layer = registryFmcsa(optionsAt(fake.url, { concurrency: 16 }))
      const wide = { start: 1, end: 1200 }
      const { found } = yield* Effect.provide(searched(wide), layer)
      assert.strictEqual(found, 300)
      assert.isAtMost(fake.counts.total, 1200 * 1.03)
      assert.isAtMost(fake.counts.in_flight_max, 16)
      assert.isAbove(fake.counts.shed, 0)
    }),
  )

  it.live("breaks off all connections at once, and is asked again for those alone", () =>
    Effect.gen(function* () {
      const reset = { status: 200, body: "", manner: "reset" as const }
      const fake = yield* registryFake({
        dockets: (mc) => [docket(mc)],
        latency_ms: () => 5,
        instead: (mc, nth) => (nth === 1 && mc > 100 && mc <= 116 ? reset : undefined),
      })
      const layer = registryFmcsa(optionsAt(fake.url))
      assert.strictEqual((yield* Effect.provide(searched(range), layer)).found, 100)
      assert.strictEqual(fake.counts.total, 400 + 16)
    }),
  )

  it.live("is left within 100 ms of the reader, by every request", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ latency_ms: () => 30_000 })
      const layer = registryFmcsa(optionsAt(fake.url, { concurrency: 16 }))
      yield* Effect.gen(function* () {
        const search = Effect.ignore(Effect.timeout(searched(range), 400))
        yield* search
        yield* Effect.repeat(Effect.sleep(5), {
          until: () => fake.counts.in_flight === 0,
          times: 19,
        })
        assert.deepEqual([fake.counts.in_flight, fake.counts.aborted], [0, 16])
        assert.strictEqual(fake.counts.total, 16)
      }).pipe(Effect.provide(layer))
    }),
  )

  it.live("is asked once for two equal searches at once", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ dockets: (mc) => [docket(mc)], latency_ms: () => 5 })
      const both = Effect.all([searched(range), searched(range)], { concurrency: 2 })
      const [one, other] = yield* Effect.provide(both, registryFmcsa(optionsAt(fake.url)))
      assert.deepEqual([one.text, one.found], [other.text, 100])
      assert.strictEqual(fake.counts.total, 400)
    }),
  )

  it.live("refuses a bad key in one request, or in as many as were under way", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ key: "another", latency_ms: () => 5 })
      const layer = registryFmcsa(optionsAt(fake.url))
      const failed = yield* Effect.provide(Effect.flip(searched(range)), layer)
      assert.match(inspect(failed), /FMCSA_WEB_KEY/)
      assert.isAtMost(fake.counts.total, 8)
      const { is_healthy, detail } = yield* Effect.gen(function* () {
        yield* Effect.ignore(searched(range))
        return yield* (yield* Registry).source
      }).pipe(Effect.provide(layer))
      assert.isFalse(is_healthy)
      assert.match(detail ?? "", /FMCSA_WEB_KEY/)
    }),
  )

  it.live("is unhealthy from an error on until it answers again", () =>
    Effect.gen(function* () {
      const busy = { status: 503, body: "{}" }
      let is_busy = true
      const fake = yield* registryFake({
        dockets: (mc) => [docket(mc)],
        instead: () => (is_busy ? busy : undefined),
      })
      yield* Effect.gen(function* () {
        const { source } = yield* Registry
        const one = { start: 4, end: 4 }
        yield* Effect.flip(searched(one))
        const result = yield* source
        assert.isFalse(result.is_healthy)
        assert.match(result.detail ?? "", /is busy and returned 503/)
        is_busy = false
        // A response in the same millisecond does not count as later.
        yield* Effect.sleep(2)
        yield* searched(one)
        const { is_healthy, detail } = yield* source
        assert.deepEqual([is_healthy, detail], [true, null])
      }).pipe(Effect.provide(registryFmcsa(optionsAt(fake.url, { tries: 1 }))))
    }),
  )

  const replies = { ...answers.final, ...answers.busy, ...answers.broken }
  it.live("never reveals the key, for any response", () =>
    Effect.gen(function* () {
      const messages: Array<unknown> = []
      const logger = Logger.make((entry) => messages.push(inspect(entry, { depth: 9 })))
      for (const [reply] of Object.values(replies)) {
        // The response may contain the key itself.
        const instead = () => ({ ...reply, headers: { ...reply.headers, "x-key": fake_key } })
        const fake = yield* registryFake({ instead })
        const options = optionsAt(fake.url, { tries: 1, timeout_seconds: 0.2 })
        yield* Effect.gen(function* () {
          const { search, source } = yield* Registry
          const exit = yield* Effect.exit(Stream.runDrain(search({ start: 1, end: 3 }, "json")))
          if (Exit.isSuccess(exit)) return assert.fail("it is no answer")
          messages.push(Cause.pretty(exit.cause), inspect(exit, { depth: 9 }), yield* source)
        }).pipe(Effect.provide(registryFmcsa(options)), Effect.provide(Logger.layer([logger])))
        assert.include([...fake.requests.keys()], 1)
      }
      assert.notInclude(inspect(messages, { depth: 9 }), fake_key)
      assert.isAbove(messages.length, 60)
      const nowhere = registryFmcsa(optionsAt("http://127.0.0.1:9/x", { tries: 1 }))
      const failed = yield* Effect.provide(Effect.flip(searched(range)), nowhere)
      assert.notInclude(inspect(failed, { depth: 9 }), fake_key)
    }),
  )
})
