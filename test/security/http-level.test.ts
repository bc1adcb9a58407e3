/**
 * Malformed HTTP over a socket: each connection ends with valid HTTP responses or none, and the
 * server keeps running. gateway/malformed.test.ts covers the responses to specific mistakes.
 */
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { probe } from "../gateway/probe.ts"
import { type Served, startHttp, until } from "../world/http.ts"

const seed = 146
const requests = 250

/** Parts of requests, in any order. */
const lines = [
  "GET /v1/blobs HTTP/1.1",
  "POST /v1/blobs/echo HTTP/1.1",
  "PUT /v1/blobs/upload HTTP/1.1",
  "GET http://a/v1/blobs HTTP/1.1",
  "GET * HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "GET  / HTTP/1.1",
  "CONNECT a:1 HTTP/1.1",
  "GET /\u0000 HTTP/1.1",
  "GET /v1/../etc HTTP/1.0",
  "PRI * HTTP/2.0",
  `GET /${"x".repeat(9000)} HTTP/1.1`,
  "GET /%%% HTTP/1.1",
  "get /v1/blobs http/1.1",
]
const headers = [
  "Host: a",
  "Host: b",
  "Host:",
  "Connection: close",
  "Connection: upgrade",
  "Upgrade: h2c",
  "Content-Length: 5",
  "Content-Length: 0",
  "Content-Length: +5",
  "Content-Length: 5, 5",
  "Content-Length: 18446744073709551616",
  "Content-Length : 5",
  "Content-Length: 0x5",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding:\tx",
  "Transfer-Encoding : chunked",
  "Content-Type: application/json",
  "Expect: 100-continue",
  "X-Request-Id: a\u000bb",
  "X-Request-Id: \u001b[2J",
  "Cookie: \u00ff",
  " folded: x",
  ":x",
  "X: a\rInjected: b",
  "X: a\nInjected: b",
  "Trailer: X",
  "TE: trailers",
  "\u0000: x",
]
const bodies = [
  "",
  "hello",
  '{"text":"a","n":1}',
  "5\r\nhello\r\n0\r\n\r\n",
  "0\r\n\r\n",
  "-1\r\n",
  "zz\r\n",
  "ffffffffffffffff\r\n",
  "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
  "5\nhello\n0\n\n",
  "GET /v1/blobs HTTP/1.1\r\nHost: a\r\n\r\n",
  "\u0016\u0003\u0001\u0002\u0000\u0001",
]

const wire = fc
  .tuple(
    fc.constantFrom(...lines),
    fc.array(fc.constantFrom(...headers), { maxLength: 6 }),
    fc.constantFrom(...bodies),
    fc.constantFrom("\r\n", "\r\n", "\r\n", "\n", "\r"),
    fc.option(fc.nat({ max: 200 }), { freq: 6 }),
  )
  .map(([line, fields, body, end, cut]) => {
    const text = [line, ...fields, "", body].join(end)
    return cut === null ? text : text.slice(0, cut)
  })

let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  served = await startHttp([probe("blob-storage", "/v1/blobs")], {
    settings: { api: { request_timeout_seconds: 1 } },
  })
})
afterAll(() => served.stop())

const status_line = /^HTTP\/1\.1 (\d{3}) /

/** The problem with all that the server sent, if any. */
const problem = (answer: string) => {
  if (answer === "") return undefined
  const status = Number(status_line.exec(answer)?.[1])
  if (!(status >= 100 && status < 500) && status !== 501 && status !== 504)
    return `status ${status}`
  return /^injected:/im.test(answer) ? "a header of the client's making" : undefined
}

it("gets an HTTP response or none, and never 500", async () => {
  const wrong: Array<string> = []
  const made = fc.sample(wire, { seed, numRuns: requests })
  // Incomplete requests wait for a timeout; all of them at once wait only once.
  await Promise.all(
    made.map(async (text) => {
      const answer = await served.raw(text)
      const why = problem(answer)
      if (why !== undefined) wrong.push(`${why}: ${JSON.stringify(text)} -> ${answer}`)
    }),
  )
  expect(wrong, `seed ${seed}`).toEqual([])
  await until(() => served.inFlight() === 0)
  expect((await served.fetch("/v1/blobs/none")).status).toBe(404)
  expect(served.logged.filter((line) => /level=(ERROR|FATAL)/.test(line))).toEqual([])
})
