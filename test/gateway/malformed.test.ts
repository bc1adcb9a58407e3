import { once } from "node:events"
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { as, type Served, startHttp, until } from "../world/http.ts"
import { type Counts, probe } from "./probe.ts"

const counts: Counts = { bytes: 0, ended: 0 }
let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  served = await startHttp([probe("blob-storage", "/v1/blobs", counts)], {
    settings: { api: { request_timeout_seconds: 1 } },
  })
})
afterAll(() => served.stop())

const statuses = (text: string) => text.match(/HTTP\/1\.1 \d{3}/g) ?? []

describe("what is not HTTP is answered once, in an envelope, and the connection ends", () => {
  it.each([
    ["a bad request line", "GET /v1/blobs HTTP/x.y\r\nHost: a\r\n\r\n", 400],
    ["no HTTP at all", "\u0000\u0001\u0002\u0003\r\n\r\n", 400],
    ["an unknown method", "FETCH /v1/blobs HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    ["no Host", "GET /v1/blobs HTTP/1.1\r\n\r\n", 400],
    ["a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n", 400],
    ["a header too large", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    [
      "both Content-Length and Transfer-Encoding",
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n" +
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/blobs HTTP/1.1\r\nHost: a\r\n\r\n",
      400,
    ],
    [
      "two lengths",
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\n" +
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
      400,
    ],
    [
      "an encoding that does not end in chunked",
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
      400,
    ],
    ["two Hosts", "GET /v1/blobs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400],
    ["the same Host twice", "GET /v1/blobs HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", 400],
    ["two Hosts in HTTP/1.0", "GET /v1/blobs HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400],
    [
      "Transfer-Encoding in HTTP/1.0",
      "POST /v1/blobs/echo HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n" +
        "\r\n0\r\n\r\nGET /v1/blobs HTTP/1.0\r\n\r\n",
      400,
    ],
    [
      "both Content-Length and Transfer-Encoding in HTTP/1.0",
      "POST /v1/blobs/echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n" +
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/blobs HTTP/1.0\r\n\r\n",
      400,
    ],
    [
      "a negative length",
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
      400,
    ],
  ])("%s", async (_name, request, status) => {
    const answer = await served.raw(request)
    expect(statuses(answer)).toEqual([`HTTP/1.1 ${status}`])
  })

  it("says so in JSON with a request id where the parser refuses it", async () => {
    const answer = await served.raw("NONSENSE\r\n\r\n")
    const [head = "", body = ""] = answer.split("\r\n\r\n")
    expect(head).toMatch(/x-request-id: [\da-f-]{36}/i)
    expect(head).toMatch(/connection: close/i)
    expect(JSON.parse(body)).toEqual({
      code: "svc.validation_error",
      title: "Validation error",
      detail: "The request is not HTTP.",
      category: "tenant_action_required",
    })
  })

  it.each([
    ["", "/v1/blobs", { code: "INVALID_ARGUMENT" }],
    ["Expect: 100-continue\r\nContent-Length: 3\r\n", "/api/search", {}],
    ["Authorization: Bearer reader\r\n", "/v1/policies", { code: "svc.validation_error" }],
  ])("says so in the path's envelope where Host is missing: %j", async (more, path, body) => {
    const answer = await served.raw(`POST ${path} HTTP/1.1\r\n${more}\r\n`)
    const [head = "", text = ""] = answer.split("\r\n\r\n")
    expect(statuses(head)).toEqual(["HTTP/1.1 400"])
    expect(head).toMatch(/x-request-id: [\da-f-]{36}/i)
    expect(head).toMatch(/connection: close/i)
    expect(text).toContain("The request has no Host header, which HTTP/1.1 requires.")
    expect(JSON.parse(text)).toMatchObject(body)
  })

  it("asks for no Host in HTTP/1.0", async () => {
    const answer = await served.raw(
      "GET /v1/blobs HTTP/1.0\r\nAuthorization: Bearer reader\r\n\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 200"])
  })

  it.each([
    ["a URL that is not encoded", "GET /v1/blobs/é HTTP/1.1\r\nHost: a\r\n\r\n", /percent-encoded/],
    [
      "a name that is not encoded",
      "GET / HTTP/1.1\r\nHost: a\r\né: b\r\n\r\n",
      /header is malformed/,
    ],
  ])("says what is wrong with %s", async (_name, request, detail) => {
    const [head = "", body = ""] = (await served.raw(request)).split("\r\n\r\n")
    expect(statuses(head)).toEqual(["HTTP/1.1 400"])
    expect(body).toMatch(detail)
  })

  const long = `X: ${"x".repeat(20_000)}\r\n\r\n`
  const too_long = "The headers exceed 16384 bytes in total."
  for (const [path, body] of [
    ["/v1/blobs/item/00", { code: "INVALID_ARGUMENT", detail: too_long }],
    ["/api/search?q=a", { error: too_long }],
    ["/api/dashboard", { detail: too_long }],
    ["/v1/policies", { code: "svc.validation_error", detail: too_long }],
  ] as const) {
    it(`headers that are too large are answered in the path's envelope: ${path}`, async () => {
      const answer = await served.raw(`GET ${path} HTTP/1.1\r\nHost: a\r\n${long}`)
      expect(statuses(answer)).toEqual(["HTTP/1.1 431"])
      expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject(body)
    })
  }

  it.each([9000, 17_000, 40_000])(
    "a URL of %i characters is 414 in its path's envelope",
    async (length) => {
      const url = `/api/search?start=${"9".repeat(length)}`
      const answer = await served.raw(`GET ${url} HTTP/1.1\r\nHost: a\r\n\r\n`)
      expect(statuses(answer)).toEqual(["HTTP/1.1 414"])
      const error = "The URL is longer than 8192 characters."
      expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toEqual({ error })
    },
  )

  it("headers that are too large and come in pieces have the envelope of no service", async () => {
    const head = "GET /v1/blobs HTTP/1.1\r\nHost: a\r\n"
    const socket = connect(Number(new URL(served.url).port), "127.0.0.1").setEncoding("utf8")
    let heard = ""
    socket.on("data", (text: string) => {
      // The response to the first request shows that the server has read both.
      if (heard === "") socket.write(long)
      heard += text
    })
    socket.write(`${head}\r\n${head}`)
    await once(socket, "close")
    expect(statuses(heard)).toEqual(["HTTP/1.1 401", "HTTP/1.1 431"])
    const body = JSON.parse(heard.split("\r\n\r\n").at(-1) ?? "")
    expect(body).toMatchObject({ code: "svc.validation_error", detail: too_long })
  })

  it("a broken chunk ends the request, not the server", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
      "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 400"])
    await until(() => served.inFlight() === 0)
  })
})

describe("requests on one connection", () => {
  it("are answered in order", async () => {
    const one = (path: string, end = "") =>
      `GET /v1/blobs${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer reader\r\n${end}\r\n`
    const answer = await served.raw(one(""), one("/none"), one("", "Connection: close\r\n"))
    expect(statuses(answer)).toEqual(["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 200"])
  })

  it("a rejected body does not become the next request", async () => {
    const hidden = "DELETE /v1/blobs/item/00 HTTP/1.1\r\nHost: a\r\n\r\n"
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n",
      `Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
      "GET /v1/blobs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 415", "HTTP/1.1 401"])
  })

  it("end where an answer does not wait for the rest of a body of unknown length", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n",
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 415"])
    expect(answer).toMatch(/^connection: close/im)
  })

  it("a body with another coding than chunked is refused, not taken as it is", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
      "Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 415"])
  })

  it("a body that is too large by its length is refused before it comes", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
      "Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 413"])
  })
})

describe("slow and vanishing clients", () => {
  it("a body that stalls is 504 after the deadline", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
      "Content-Length: 30\r\n\r\n{",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 504"])
  })

  it("a stream of bytes that stops coming is 504 after the deadline", async () => {
    const answer = await served.raw(
      "POST /v1/blobs/upload HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\n",
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    )
    expect(statuses(answer)).toEqual(["HTTP/1.1 504"])
  })

  it("an answer that stops coming is cut off after the deadline", async () => {
    const before = counts.ended
    const answer = await served.raw("GET /v1/blobs/silence HTTP/1.1\r\nHost: a\r\n\r\n")
    expect(statuses(answer)).toEqual(["HTTP/1.1 200"])
    expect(answer).not.toContain("0\r\n\r\n")
    await until(() => counts.ended > before)
  })

  it("a stream that goes on outlives the deadline", async () => {
    const answer = await served.fetch("/v1/blobs/events")
    const started = performance.now()
    const reader = answer.body?.getReader()
    let last_ms = 0
    while (last_ms < 1500) {
      const read = await reader?.read()
      if (read?.done !== false) break
      last_ms = performance.now() - started
    }
    await reader?.cancel()
    expect(last_ms).toBeGreaterThanOrEqual(1500)
  })

  it.each(["/slow?ms=60000", "/events"])(
    "when the client vanishes, the handler of %s is interrupted",
    async (path) => {
      const before = counts.ended
      const socket = connect(Number(new URL(served.url).port), "127.0.0.1")
      socket.on("error", () => undefined)
      socket.write(`GET /v1/blobs${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
      await until(() => served.inFlight() > 0)
      socket.destroy()
      await until(() => counts.ended > before && served.inFlight() === 0)
    },
  )

  it("nothing is kept of requests that are over", async () => {
    await served.fetch("/v1/blobs", { headers: as("reader") })
    await served.fetch("/v1/blobs/events", { method: "HEAD" })
    await served.fetch("/v1/blobs/none")
    await until(() => served.inFlight() === 0)
  })
})
