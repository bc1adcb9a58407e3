import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Registry } from "#actors/carrier-search/registry.ts"
import {
  type RegistryFmcsaOptions,
  registryFmcsa,
} from "#adapters/carrier-search/registry-fmcsa.ts"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { type Docket, registryContract, searched } from "../contract/registry.ts"
import { optionsAt } from "./fmcsa-given.ts"
import * as answers from "./registry-answers.ts"
import { type FakeRegistry, fake_key, registryFake } from "./registry-fake.ts"

const one: Docket = {
  mc: 1,
  dot: 77,
  name: "ONE CARRIER LLC",
  active: true,
  carrier_only: true,
}
const dockets = (mc: number) => [{ ...one, mc, dot: 76 + mc }]

const sendRequest = <A, E>(
  fake: FakeRegistry,
  body: Effect.Effect<A, E, Registry>,
  more: Partial<RegistryFmcsaOptions> = {},
) => Effect.provide(body, registryFmcsa(optionsAt(fake.url, more)))

const refused = (range: Range) =>
  Effect.gen(function* () {
    const { search } = yield* Registry
    return yield* Effect.flip(Stream.runDrain(search(range, "json")))
  })

const few = { start: 1, end: 5 }
const many = { start: 1, end: 500 }
const twice = { tries: 2 }
/** Options for responses that would time out. */
const hasty = { tries: 2, timeout_seconds: 0.5 }
const waitsFor = ({ manner }: answers.Reply) => (manner?.startsWith("hang") ? hasty : twice)

describe("FMCSA", () => {
  registryContract("as a registry", (those) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const fake = yield* registryFake({
          dockets: (mc) => those.filter((docket) => docket.mc === mc),
          key: fake_key,
        })
        return registryFmcsa(optionsAt(fake.url))
      }),
    ),
  )

  for (const [name, reply] of Object.entries(answers.unknown)) {
    it.live(`knows no carrier where it answers ${name}`, () =>
      Effect.gen(function* () {
        const instead = (mc: number) => (mc === 3 ? undefined : reply)
        const fake = yield* registryFake({ dockets, instead })
        const { found, text } = yield* sendRequest(fake, searched(few))
        assert.strictEqual(found, 1)
        assert.match(text, /"mcNumber":3,/)
        assert.strictEqual(fake.counts.total, 5)
      }),
    )
  }

  for (const [name, [reply, because]] of Object.entries(answers.final)) {
    it.live(`is not asked again for ${name}`, () =>
      Effect.gen(function* () {
        const fake = yield* registryFake({ instead: () => reply })
        const failed = yield* sendRequest(fake, refused(many))
        assert.match(failed.reason, because)
        assert.deepEqual([failed.failed, failed.first <= 8], [1, true])
        // A circular redirect is followed twice.
        assert.isAtMost(fake.counts.total, name.includes("circles") ? 24 : 8)
      }),
    )
  }

  for (const [name, [reply, because]] of Object.entries({ ...answers.busy, ...answers.broken })) {
    it.live(`is asked again for ${name}, and the search fails in the end`, () =>
      Effect.gen(function* () {
        const instead = (mc: number) => (mc === 3 ? reply : undefined)
        const fake = yield* registryFake({ dockets, instead })
        const failed = yield* sendRequest(fake, refused(few), waitsFor(reply))
        assert.match(failed.reason, because)
        assert.match(failed.reason, /, in 2 attempts$/)
        assert.deepEqual([failed.failed, failed.first], [1, 3])
        assert.strictEqual(fake.requests.get(3), 2)
        assert.isAtMost(fake.counts.total, 6)
      }),
    )

    it.live(`answers where ${name} passes`, () =>
      Effect.gen(function* () {
        const instead = (_: number, nth: number) => (nth === 1 ? reply : undefined)
        const fake = yield* registryFake({ dockets, instead })
        const { found } = yield* sendRequest(fake, searched(few), waitsFor(reply))
        assert.strictEqual(found, 5)
        assert.strictEqual(fake.counts.total, 10)
      }),
    )
  }

  it.live("is taken at its word in either spelling, and one object for one in a list", () =>
    Effect.gen(function* () {
      const { allowedToOperate, ...rest } = answers.carrierOf(one)
      const instead = () => answers.json(answers.item({ ...rest, allowToOperate: "Y" }))
      const fake = yield* registryFake({ instead })
      const { text } = yield* sendRequest(fake, searched({ start: 4, end: 4 }))
      assert.strictEqual(allowedToOperate, "Y")
      assert.match(text, /"mcNumber":4,"name":"ONE CARRIER LLC"/)
    }),
  )
  keeping()
  conversing()
})

/** The rule that keeps or drops a carrier. Source: market facts B1.4. */
const rules: ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>, boolean]> = [
  ["a common authority", { commonAuthorityStatus: "A", contractAuthorityStatus: "N" }, true],
  ["a contract authority", { commonAuthorityStatus: "I", contractAuthorityStatus: "A" }, true],
  ["no authority", { commonAuthorityStatus: "I", contractAuthorityStatus: "N" }, false],
  ["no leave to operate", { allowedToOperate: "N" }, false],
  ["a broker's authority in addition", { brokerAuthorityStatus: "A" }, false],
  ["a broker's authority that lapsed", { brokerAuthorityStatus: "I" }, true],
  ["another census type", { censusTypeId: { censusTypeDesc: "BROKER" } }, false],
  ["two census types", { censusTypeId: { censusTypeDesc: "CARRIER/SHIPPER" } }, false],
  ["no census type", { censusTypeId: null }, true],
  ["a USDOT record that is inactive", { statusCode: "I" }, true],
]

const keeping = () => {
  for (const [name, more, is_kept] of rules) {
    it.live(`${is_kept ? "shows" : "drops"} a carrier with ${name}`, () =>
      Effect.gen(function* () {
        const reply = answers.json([answers.item({ ...answers.carrierOf(one), ...more })])
        const fake = yield* registryFake({ instead: () => reply })
        const { found } = yield* sendRequest(fake, searched({ start: 4, end: 4 }))
        assert.strictEqual(found, is_kept ? 1 : 0)
      }),
    )
  }

  it.live("lists a carrier once that comes twice under a number", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ dockets: () => [one, { ...one, dot: 5 }, one] })
      assert.strictEqual((yield* sendRequest(fake, searched({ start: 4, end: 4 }))).found, 2)
    }),
  )
}

const conversing = () => {
  it.live("receives the user agent and the purpose, once for each number", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ dockets, key: fake_key })
      yield* sendRequest(fake, searched({ start: 1, end: 100 }))
      assert.strictEqual(fake.counts.total, 100)
      assert.deepEqual([...fake.requests.values()], Array(100).fill(1))
      const [{ accept, "user-agent": agent, authorization } = {}] = fake.headers
      assert.deepEqual([accept, agent], ["application/json", "almanac/1.2.3"])
      assert.isUndefined(authorization)
    }),
  )

  it.live("is followed on its own host", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({ dockets })
      const location = `${new URL(fake.url).pathname}/carriers/docket-number/9`
      fake.plan = {
        dockets,
        instead: (mc) => (mc === 9 ? undefined : { status: 301, body: "", headers: { location } }),
      }
      assert.strictEqual((yield* sendRequest(fake, searched({ start: 4, end: 4 }))).found, 1)
    }),
  )

  it.live("may take its time for each byte, until the time is over", () =>
    Effect.gen(function* () {
      const instead = () => ({ ...answers.json([]), manner: "drip" as const })
      const fake = yield* registryFake({ instead })
      assert.strictEqual((yield* sendRequest(fake, searched(few))).found, 0)
      const failed = yield* sendRequest(fake, refused(few), hasty)
      assert.match(failed.reason, /^timeout, no response from FMCSA within 0.5 s/)
    }),
  )

  it.live("cannot be reached", () =>
    Effect.gen(function* () {
      const fake = yield* registryFake({})
      const nowhere = { url: "http://127.0.0.1:9/qc/services", tries: 2 }
      const failed = yield* sendRequest(fake, refused(few), nowhere)
      assert.match(failed.reason, /connection was refused, in 2 attempts/)
      const unknown = { url: "http://registry.invalid/qc/services", tries: 1 }
      assert.match((yield* sendRequest(fake, refused(few), unknown)).reason, /cannot be resolved/)
    }),
  )

  it.live("ends its connections with the layer", () =>
    Effect.gen(function* () {
      const hang = { status: 200, body: "", manner: "hang" as const }
      const fake = yield* registryFake({ instead: () => hang })
      const search = refused({ start: 1, end: 50 })
      yield* Effect.ignore(Effect.timeout(sendRequest(fake, search), 100))
      yield* Effect.repeat(Effect.sleep(5), { until: () => fake.counts.in_flight === 0, times: 20 })
      assert.deepEqual([fake.counts.in_flight, fake.counts.aborted, fake.counts.total], [0, 8, 8])
    }),
  )
}
