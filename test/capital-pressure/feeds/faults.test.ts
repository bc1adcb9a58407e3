import { randomBytes } from "node:crypto"
import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { publishers } from "#adapters/capital-pressure/feeds/plan.ts"
import type { FeedsHttpOptions } from "#adapters/capital-pressure/feeds-http.ts"
import { refused, valuesOf } from "../../contract/feeds.ts"
import { given, metricOf } from "../../world/capital-pressure/feed-given.ts"
import { basesAt, type FakePublisher } from "../../world/capital-pressure/publisher.ts"

/** One metric per publisher, and the publisher's name in failures. */
const sources = [
  ["fred", "hy_spread", "FRED"] as const,
  ["ofr", "ofr_fsi", "OFR"] as const,
  ["cftc", "cot_am_spx", "CFTC"] as const,
  ["cboe", "skew", "Cboe"] as const,
  ["finra", "margin_debt", "FINRA"] as const,
  ["fiscaldata", "treasury_supply", "FiscalData"] as const,
] as const

const tries_max = 4

interface Fault {
  readonly name: string
  readonly answer: (response: ServerResponse, fake: FakePublisher) => void
  readonly because: RegExp
  /** Expected number of requests. */
  readonly requests: number
  /** Set by tests of the delays themselves. */
  readonly times?: NonNullable<FeedsHttpOptions["times"]>
}

const status = (code: number, because: RegExp, requests: number): Fault => ({
  name: `answers ${code}`,
  answer: (response) => response.writeHead(code).end("no"),
  because,
  requests,
})

const hasty = { idle_ms: 60, attempt_ms: 150, pause_ms: 1, spacing_ms: 0 }

const faults: ReadonlyArray<Fault> = [
  status(403, /returned status 403: it rejects our requests\. Set capital\.contact/, 1),
  status(404, /returned status 404\. It may have moved/, 1),
  status(429, /returned status 429, too many requests\. The next ingest/, tries_max),
  status(500, /returned status 500\. The next ingest/, tries_max),
  status(204, /returned status 204/, 1),
  {
    name: "answers a web page with 200",
    answer: (response) => {
      response.writeHead(200, { "content-type": "text/html" })
      response.end("<!DOCTYPE html><html><title>Maintenance</title></html>")
    },
    because: /(a web page instead of data|not a workbook)\. Its format may have changed/,
    requests: 1,
  },
  {
    name: "answers with nothing",
    answer: (response) => response.writeHead(200).end(),
    because: /nothing|not a workbook/,
    requests: 1,
  },
  {
    name: "answers with bytes of any kind",
    answer: (response) => response.writeHead(200).end(randomBytes(5000)),
    because: /not text|not a workbook/,
    requests: 1,
  },
  {
    name: "breaks off in the middle",
    answer: (response) => {
      response.writeHead(200, { "content-length": "5000" })
      response.write("date,value\n2024-01-02,1", () => response.socket?.destroy())
    },
    because: /cannot be reached, or closed the connection/,
    requests: tries_max,
  },
  {
    name: "sends what is packed wrongly",
    answer: (response) => {
      const packed = gzipSync("date,value\n2024-01-02,1\n".repeat(50))
      packed.fill(0xff, 12, 40)
      response.writeHead(200, { "content-encoding": "gzip" }).end(packed)
    },
    because: /cannot be decompressed/,
    requests: tries_max,
  },
  {
    name: "packs what it does not end",
    answer: (response) => {
      const packed = gzipSync(randomBytes(5000))
      response.writeHead(200, { "content-encoding": "gzip" }).end(packed.subarray(0, 2500))
    },
    because: /cannot be decompressed/,
    requests: tries_max,
  },
  {
    name: "packs in a way that was not asked for",
    answer: (response) => response.writeHead(200, { "content-encoding": "br" }).end("xx"),
    because: /encoding that was not requested/,
    requests: 1,
  },
  {
    name: "redirects to another host",
    answer: (response, { url }) => {
      const { port } = new URL(url)
      response.writeHead(302, { location: `http://localhost:${port}/other` }).end()
    },
    because: /redirects to another host \(localhost\)/,
    requests: 1,
  },
  {
    name: "sends us to another port",
    answer: (response) => response.writeHead(302, { location: "http://127.0.0.1:9/x" }).end(),
    because: /redirects to another host/,
    requests: 1,
  },
  {
    name: "sends us in circles",
    answer: (response) => response.writeHead(307, { location: "/again" }).end(),
    because: /redirects too many times/,
    requests: 4,
  },
  {
    name: "never answers",
    answer: () => undefined,
    because: /did not respond in time/,
    requests: tries_max,
    times: hasty,
  },
  {
    name: "drips its answer",
    answer: (response) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write("x"), 20)
      response.on("close", () => clearInterval(drip))
    },
    because: /did not respond in time/,
    requests: tries_max,
    times: hasty,
  },
]

describe.each(sources)("a failure of %s", (_publisher, metric_id, name) => {
  for (const { name: what, answer, because, requests, times } of faults) {
    it.live(`that ${what} names it, why, and what to do`, () =>
      Effect.gen(function* () {
        const { fetch, fake } = yield* given(times && { times })
        fake.instead = (_asked, response) => {
          answer(response, fake)
          return true
        }
        const detail = yield* refused(fetch(metricOf(metric_id)), because)
        assert.isTrue(detail.startsWith(`${name} `), detail)
        assert.lengthOf(fake.requests, requests)
        assert.notMatch(detail, /https?:\/\/|[?=&]/)
      }),
    )
  }

  it.live("that passes is asked about again", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      const seconds = ["0", "Sat, 01 Jan 2000 00:00:00 GMT", "soon"]
      fake.instead = (_asked, response) => {
        const after = seconds[fake.requests.length - 1]
        if (after === undefined) return false
        response.writeHead(fake.requests.length === 1 ? 429 : 503, { "retry-after": after }).end()
        return true
      }
      assert.isNotEmpty(valuesOf(yield* fetch(metricOf(metric_id))))
      assert.lengthOf(fake.requests, 4)
    }),
  )

  it.live("that cannot be reached is no other's", () =>
    Effect.gen(function* () {
      const { fetch } = yield* given({ bases: basesAt("http://127.0.0.1:1") })
      yield* refused(fetch(metricOf(metric_id)), /cannot be reached.*ECONNREFUSED/)
      const { fetch: nowhere } = yield* given({ bases: basesAt("http://no.such.host.invalid") })
      yield* refused(nowhere(metricOf(metric_id)), /cannot be (resolved|reached)/)
    }),
  )
})

describe("a publisher that wants to be left alone", () => {
  it.live("is not asked before the time that it names", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      fake.instead = (_asked, response) => {
        response.writeHead(429, { "retry-after": "1" }).end()
        fake.instead = () => false
        return true
      }
      const began = Date.now()
      assert.isNotEmpty(valuesOf(yield* fetch(metricOf("skew"))))
      assert.isAtLeast(Date.now() - began, 990)
    }),
  )

  it.live("for longer than we wait is not asked again, nor for anything else", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      fake.instead = (_asked, response) => {
        response.writeHead(429, { "retry-after": "3600" }).end()
        return true
      }
      yield* refused(fetch(metricOf("skew")), /returned status 429/)
      assert.lengthOf(fake.requests, 1)
      yield* refused(fetch(metricOf("nfci")), /sent for now\. Try again in 60 minutes\.$/)
      assert.lengthOf(fake.requests, 1)
    }),
  )
})

describe("an answer that is too large", () => {
  const mb = 1024 * 1024

  it.live("is not read further than its bound", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      let sent = 0
      fake.instead = (_asked, response) => {
        response.writeHead(200)
        const part = Buffer.alloc(mb, "x")
        const more = () => {
          if (response.destroyed || sent > 200 * mb) return
          sent += part.length
          response.write(part, more)
        }
        more()
        return true
      }
      yield* refused(fetch(metricOf("skew")), /exceeded the maximum response size/)
      assert.isBelow(sent, 100 * mb)
      assert.lengthOf(fake.requests, 1)
    }),
  )

  it.live("is not unpacked further either", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      const bomb = gzipSync(Buffer.alloc(80 * mb, "0"))
      assert.isBelow(bomb.length, mb)
      fake.instead = (_asked, response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(bomb)
        return true
      }
      yield* refused(fetch(metricOf("ofr_fsi")), /exceeded the maximum response size/)
    }),
  )

  it.live("is a smaller one for a workbook", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      fake.instead = (_asked, response) => {
        response.writeHead(200).end(Buffer.alloc(17 * mb))
        return true
      }
      yield* refused(fetch(metricOf("margin_debt")), /FINRA exceeded the maximum response size/)
    }),
  )
})

describe("a caller that is interrupted", () => {
  it.live("ends the request", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      const left = yield* Deferred.make<void>()
      const came = yield* Deferred.make<void>()
      fake.instead = (_asked, response) => {
        response.writeHead(200).write("date,")
        response.on("close", () => Deferred.doneUnsafe(left, Effect.void))
        Deferred.doneUnsafe(came, Effect.void)
        return true
      }
      const asking = yield* Effect.forkChild(fetch(metricOf("skew")))
      yield* Deferred.await(came)
      yield* Fiber.interrupt(asking)
      yield* Deferred.await(left)
      assert.lengthOf(fake.requests, 1)
    }),
  )
})

describe("an answer that is packed, or somewhere else of the same host", () => {
  it.live("is read", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      fake.instead = ({ url, headers }, response) => {
        assert.equal(headers["accept-encoding"], "gzip")
        if (url.pathname !== "/new/SKEW.csv") {
          response.writeHead(301, { location: "/new/SKEW.csv" }).end()
          return true
        }
        response.writeHead(200, { "content-encoding": "gzip" })
        response.end(gzipSync("DATE,SKEW\r\n01/02/2024,141.5\r\n"))
        return true
      }
      assert.deepEqual(valuesOf(yield* fetch(metricOf("skew"))), [["2024-01-02", 141.5]])
    }),
  )
})

it("every publisher of a metric is among them", () => {
  const others = ["fred_api", "yahoo", "stooq"]
  const names = Object.keys(publishers).filter((name) => !others.includes(name))
  assert.deepEqual(names.toSorted(), sources.map(([name]) => name).toSorted())
})
