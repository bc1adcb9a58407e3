import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { request } from "undici"
import { unverifiedAgent } from "#adapters/capital-pressure/feeds/tls.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { refused, valuesOf } from "../../contract/feeds.ts"
import { feedsWith, metricOf, tempFolder } from "../../world/capital-pressure/feed-given.ts"
import { optionsAt, publisher } from "../../world/capital-pressure/publisher.ts"
import { certificateText } from "../../world/certificate.ts"

const made = mkdtempSync(join(tmpdir(), "almanac-feed-tls-"))
afterAll(() => rmSync(made, { recursive: true }))

const tls = certificateText({ folder: made, for: "IP:127.0.0.1,DNS:localhost" })

const at_stooq = { prices_source: "stooq", stooq_key: Redacted.make("key") } as const

describe("an untrusted certificate", () => {
  const live = metrics.filter(({ stub, source_kind }) => stub === null && source_kind !== "cftc")

  it.live("is refused of each source but the CFTC, and costs one request each", () =>
    Effect.gen(function* () {
      const fake = yield* publisher(tls)
      const options = optionsAt(fake.url, yield* tempFolder)
      const { fetch, prices } = yield* feedsWith(options)
      const because = /certificate that cannot be verified \(DEPTH_ZERO_SELF_SIGNED_CERT\)/
      assert.lengthOf(live, 19)
      for (const metric of live) yield* refused(fetch(metric), because)
      yield* refused(prices("UNH"), because)
      yield* refused(prices("SP500"), because)
      const keyed = yield* feedsWith({
        ...options,
        ...at_stooq,
        fred_key: Redacted.make("key"),
      })
      yield* refused(keyed.fetch(metricOf("nfci")), because)
      yield* refused(keyed.prices("UNH"), because)
      assert.deepEqual(fake.requests, [])
    }),
  )

  it.live("is rejected even if the environment disables verification", () =>
    Effect.gen(function* () {
      const fake = yield* publisher(tls)
      const { fetch } = yield* feedsWith(optionsAt(fake.url, yield* tempFolder))
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"
      const failing = refused(fetch(metricOf("nfci")), /cannot be verified/)
      yield* Effect.ensuring(
        failing,
        Effect.sync(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED),
      )
    }),
  )

  it.live("is taken of the CFTC, unless its verification is turned on", () =>
    Effect.gen(function* () {
      const fake = yield* publisher(tls)
      const options = optionsAt(fake.url, yield* tempFolder)
      const { fetch } = yield* feedsWith(options)
      assert.isNotEmpty(valuesOf(yield* fetch(metricOf("cot_am_spx"))))
      const verifying = yield* feedsWith({ ...options, cftc_tls_verify: true })
      yield* refused(
        verifying.fetch(metricOf("cot_am_spx")),
        /CFTC has a certificate that cannot be verified/,
      )
    }),
  )
})

describe("the agent that does not verify", () => {
  it.live("connects to its own host and to no other one", () =>
    Effect.gen(function* () {
      const fake = yield* publisher(tls)
      const { port } = new URL(fake.url)
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => unverifiedAgent("127.0.0.1", 1_000_000)),
        (one) => Effect.promise(() => one.destroy()),
      )
      const codeAt = (host: string) =>
        Effect.promise(() =>
          request(`https://${host}:${port}/graph/fredgraph.csv?id=NFCI`, {
            dispatcher: agent,
          }).then(
            async ({ statusCode, body }) => {
              await body.dump()
              return statusCode
            },
            (error: unknown) => (error instanceof Error && "code" in error ? error.code : "?"),
          ),
        )
      assert.equal(yield* codeAt("localhost"), "ERR_OTHER_HOST")
      assert.deepEqual(fake.requests, [])
      assert.equal(yield* codeAt("127.0.0.1"), 200)
    }),
  )

  it.live("goes nowhere else when it is sent there", () =>
    Effect.gen(function* () {
      const fake = yield* publisher(tls)
      const { port } = new URL(fake.url)
      const options = optionsAt(fake.url, yield* tempFolder)
      const bases = { ...options.bases, cftc: `https://localhost:${port}` }
      const { fetch } = yield* feedsWith({ ...options, bases })
      fake.instead = (_asked, response) => {
        response.writeHead(302, { location: `https://sub.localhost:${port}/x` }).end()
        return true
      }
      yield* refused(
        fetch(metricOf("cot_am_spx")),
        /CFTC (redirects to another host|can be fetched from one host)/,
      )
      assert.lengthOf(fake.requests, 1)
    }),
  )
})
