import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cut, envelopeOf } from "#gateway/envelope.ts"
import { as, type Served, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const body_bytes_max = 1024

let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  served = await startHttp(
    [
      probe("blob-storage", "/v1/blobs"),
      probe("share-protection", "/v1/shares"),
      probe("carrier-search", "/api/search"),
      probe("capital-pressure", "/api/tiers"),
      probe("plant-disease", "/predict"),
    ],
    {
      settings: {
        api: { request_timeout_seconds: 1 },
        blob: { json_body_bytes_max: body_bytes_max },
      },
    },
  )
})
afterAll(() => served.stop())

type Body = Readonly<Record<string, unknown>>

/** The fixed text of each envelope for a status. */
const words = {
  "/v1/blobs": {
    400: { code: "INVALID_ARGUMENT", message: "invalid argument" },
    401: { code: "UNAUTHENTICATED", message: "unauthenticated" },
    403: { code: "PERMISSION_DENIED", message: "permission denied" },
    404: { code: "NOT_FOUND", message: "not found" },
    413: { code: "RESOURCE_EXHAUSTED", message: "request too large" },
    414: { code: "INVALID_ARGUMENT", message: "URL too long" },
    415: { code: "INVALID_ARGUMENT", message: "unsupported media type" },
    500: { code: "INTERNAL", message: "internal error", detail: "" },
    501: { code: "UNIMPLEMENTED", message: "unimplemented" },
    503: { code: "UNAVAILABLE", message: "unavailable" },
    504: { code: "DEADLINE_EXCEEDED", message: "deadline exceeded" },
  },
  "/v1/shares": {
    400: { code: "svc.validation_error", category: "tenant_action_required" },
    401: { code: "svc.unauthorized", category: "tenant_action_required" },
    403: { code: "svc.forbidden", category: "tenant_action_required" },
    404: { code: "svc.not_found", title: "Not found", category: "tenant_action_required" },
    405: { code: "svc.method_not_allowed", category: "tenant_action_required" },
    413: { code: "svc.validation_error", title: "Request too large" },
    414: { code: "svc.validation_error", title: "URL too long" },
    415: { code: "svc.validation_error", title: "Unsupported media type" },
    500: { code: "svc.internal_error", category: "operator_action_required", detail: "" },
    503: { code: "svc.backend_unavailable", category: "operator_action_required" },
    504: { code: "svc.backend_unavailable", category: "operator_action_required" },
  },
  "/api/search": {},
  "/api/tiers": { 500: { detail: "Internal Server Error" } },
  "/predict": {},
} satisfies Readonly<Record<string, Readonly<Record<number, Body>>>>

const keys = {
  "/v1/blobs": ["code", "detail", "message", "request_id"],
  "/v1/shares": ["category", "code", "detail", "title"],
  "/api/search": ["error"],
  "/api/tiers": ["detail"],
  "/predict": ["error"],
} as const

const bases = ["/v1/blobs", "/v1/shares", "/api/search", "/api/tiers", "/predict"] as const

const expectEnvelope = async (base: (typeof bases)[number], status: number, answer: Response) => {
  const body: Body = await answer.json()
  expect([answer.status, body]).toMatchObject([status, {}])
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/)
  expect(Object.keys(body).sort()).toEqual(keys[base])
  const wanted: Readonly<Record<number, Body>> = words[base]
  expect(body).toMatchObject(wanted[status] ?? {})
  const request_id = answer.headers.get("x-request-id")
  expect(request_id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  if (base === "/v1/blobs") expect(body.request_id).toBe(request_id)
  if (base === "/v1/shares") {
    expect(answer.headers.get("x-openstack-request-id")).toBe(`req-${request_id}`)
  }
  return body
}

const post = (body: string, headers = {}) => ({
  method: "POST",
  body,
  headers: { "content-type": "application/json", ...headers },
})

describe.each(bases)("below %s", (base) => {
  const is_blob = base === "/v1/blobs"

  it("an unknown path is 404", async () => {
    await expectEnvelope(base, 404, await served.fetch(`${base}/no/such/path`))
  })

  it("a method that the path lacks is 405, 501 for blobs, with what it has", async () => {
    const answer = await served.fetch(`${base}/echo`, { method: "PATCH" })
    await expectEnvelope(base, is_blob ? 501 : 405, answer)
    expect(answer.headers.get("allow")).toBe("POST")
    const read = await served.fetch(base, { method: "POST" })
    expect(read.headers.get("allow")).toBe("GET, HEAD")
  })

  it("without a token it is 401 with a challenge", async () => {
    const answer = await served.fetch(base)
    await expectEnvelope(base, 401, answer)
    const first = base === "/v1/shares" ? `Keystone uri="${served.url}", ` : ""
    expect(answer.headers.get("www-authenticate")).toBe(`${first}Bearer realm="almanac"`)
  })

  it.each(["expired", "unknown", "a b"])("with the token %s it is 401", async (token) => {
    const answer = await served.fetch(base, { headers: as(token) })
    await expectEnvelope(base, 401, answer)
    expect(answer.headers.get("www-authenticate")).toContain("invalid_token")
  })

  it("with another scheme than Bearer it is 401", async () => {
    const headers = { authorization: "Basic cmVhZGVyOg==" }
    await expectEnvelope(base, 401, await served.fetch(base, { headers }))
  })

  it("with a token that lacks the scope it is 403", async () => {
    const path = `${base}/item/${"0".repeat(32)}`
    const answer = await served.fetch(path, { method: "DELETE", headers: as("reader") })
    await expectEnvelope(base, 403, answer)
  })

  it("an endpoint without a declared access is for operators only", async () => {
    await expectEnvelope(base, 403, await served.fetch(`${base}/locked`, { headers: as("writer") }))
    expect((await served.fetch(`${base}/locked`, { headers: as("admin") })).status).toBe(200)
  })

  it("while the identity provider is unreachable is 503, never 401", async () => {
    await expectEnvelope(base, 503, await served.fetch(base, { headers: as("outage") }))
  })

  it("a body that is declared too large is 413", async () => {
    const text = JSON.stringify({ text: "x".repeat(body_bytes_max), n: 1 })
    await expectEnvelope(base, 413, await served.fetch(`${base}/echo`, post(text)))
  })

  it("a body that grows too large without a declared length is 413", async () => {
    const chunk = "x".repeat(body_bytes_max).toString()
    const answer = await served.raw(
      `POST ${base}/echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`,
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
      `400\r\n${chunk}\r\n`,
      `400\r\n${chunk}\r\n0\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(answer).toContain("too large")
  })

  it("a body of another type is 415", async () => {
    const init = post("n=1", { "content-type": "application/x-www-form-urlencoded" })
    const body = await expectEnvelope(base, 415, await served.fetch(`${base}/echo`, init))
    expect(JSON.stringify(body)).toContain("application/json")
  })

  it("a compressed body is 415", async () => {
    const init = post("{}", { "content-encoding": "gzip" })
    await expectEnvelope(base, 415, await served.fetch(`${base}/echo`, init))
  })

  it.each([
    ["no JSON", "{", "body"],
    ["nothing", "", "body"],
    ["a missing field", '{"text":"a"}', "body.n: Missing key"],
    ["a wrong type", '{"text":1,"n":1}', "body.text: Expected string"],
  ])("a body that is %s is 400 and the detail names it", async (_name, text, named) => {
    const body = await expectEnvelope(base, 400, await served.fetch(`${base}/echo`, post(text)))
    expect(JSON.stringify(body)).toContain(named)
  })

  it("a defect is 500 without its cause, which is logged with the request's id", async () => {
    const answer = await served.fetch(`${base}/boom`)
    const body = await expectEnvelope(base, 500, answer)
    expect(JSON.stringify(body)).not.toContain("secret")
    const line = served.logged.find((text) =>
      text.includes(String(answer.headers.get("x-request-id"))),
    )
    expect(line).toContain("the secret cause")
  })

  it("a handler that takes longer than the deadline is 504", async () => {
    await expectEnvelope(base, 504, await served.fetch(`${base}/slow?ms=60000`))
  })

  it("a malformed escape in the path is 400", async () => {
    await expectEnvelope(base, 400, await served.fetch(`${base}/%zz`))
    await expectEnvelope(base, 400, await served.fetch(`${base}/%ff%fe`))
  })

  it("a very long URL is 414", async () => {
    await expectEnvelope(base, 414, await served.fetch(`${base}/${"a".repeat(9000)}`))
  })

  it("dot segments are names, not steps: 404", async () => {
    const answer = await served.raw(
      `GET ${base}/../../livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 404 /)
  })

  it("trailing and doubled slashes do not matter", async () => {
    const twice = base.replace(/\/(\w+)$/, "//$1")
    for (const path of [`${base}/`, twice]) {
      expect((await served.fetch(path, { headers: as("reader") })).status).toBe(200)
      await expectEnvelope(base, 401, await served.fetch(path))
    }
  })

  it("HEAD answers what GET does, without the body", async () => {
    const got = await served.fetch(base, { headers: as("reader") })
    const head = await served.fetch(base, { method: "HEAD", headers: as("reader") })
    expect(head.status).toBe(200)
    expect(await head.text()).toBe("")
    const length = (await got.text()).length
    expect(Number(head.headers.get("content-length"))).toBe(length)
    expect((await served.fetch(base, { method: "HEAD" })).status).toBe(401)
    expect((await served.fetch(`${base}/echo`, { method: "HEAD" })).status).toBe(
      is_blob ? 501 : 405,
    )
  })
})

describe("paths that no service owns", () => {
  it.each([
    ["/v1/blobsomething", ["code", "detail", "message", "request_id"]],
    ["/v1/cluster/x", ["code", "detail", "message", "request_id"]],
    ["/internal/v1/x", ["code", "detail", "message", "request_id"]],
    ["/v1/targets", ["category", "code", "detail", "title"]],
    ["/api/searching", ["error"]],
    ["/api/other", ["detail"]],
    ["/health", ["detail"]],
    ["/healthy", ["category", "code", "detail", "title"]],
    ["/predictions", ["error"]],
    ["/", ["category", "code", "detail", "title"]],
    ["//v1//blobs//none//there", ["code", "detail", "message", "request_id"]],
  ])("%s answers 404 in the envelope of its prefix", async (path, names) => {
    const answer = await fetch(`${served.url}${path}`)
    expect(answer.status).toBe(404)
    expect(Object.keys(await answer.json()).sort()).toEqual(names)
  })

  it("an envelope is chosen by path alone", () => {
    expect(envelopeOf("/v1/blobs/")).toBe(envelopeOf("/v1//blobs"))
    expect(envelopeOf("/V1/blobs")).toBe(envelopeOf("/"))
  })
})

describe("a text is cut", () => {
  it.each([
    ["abc", 3, "abc"],
    ["abcd", 3, "abc"],
    ["aé", 2, "a"],
    ["aé", 3, "aé"],
    ["€", 2, ""],
    ["a\u{10348}b", 4, "a"],
    ["a\u{10348}b", 5, "a\u{10348}"],
    ["x", 0, ""],
  ])("%s to %i bytes is %s", (text, bytes, wanted) => expect(cut(text, bytes)).toBe(wanted))
})
