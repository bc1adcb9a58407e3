/** Caching and compression of responses, and the pages of other origins that may read them. */
import { gunzipSync } from "node:zlib"
import { request } from "undici"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Dashboarded, startDashboard } from "../../world/capital-pressure/served.ts"
import { fillFile, openWriter } from "../../world/capital-pressure/store-file.ts"
import { syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"

const paths = [
  "/api/dashboard",
  "/api/sources",
  "/api/scheduler",
  "/api/watchlist",
  "/api/metrics/nfci/history",
  "/api/metrics/nfci/detail",
  "/api/tier/1/history",
]

let served: Dashboarded
beforeAll(async () => {
  served = await startDashboard()
  fillFile(served.path, syntheticStore())
})
afterAll(() => served.stop())

type Headers = Readonly<Record<string, string>>

/** The raw response: nothing is decompressed. */
const get = async (path: string, headers: Headers = {}, method: "GET" | "HEAD" = "GET") => {
  const answer = await request(served.url + path, { method, headers })
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  return { status: answer.statusCode, headers: answer.headers, bytes }
}

const tagOf = ({ headers }: Awaited<ReturnType<typeof get>>) => String(headers.etag)

describe("an answer", () => {
  it.each(paths)("%s has a strong tag, and is 304 for who has it", async (path) => {
    const first = await get(path)
    expect(tagOf(first)).toMatch(/^"[\w-]{22}"$/)
    expect(first.headers).toMatchObject({ "cache-control": "no-cache", vary: /accept-encoding/ })
    expect(tagOf(await get(path))).toBe(tagOf(first))
    for (const known of [tagOf(first), `W/${tagOf(first)}`, `"other", ${tagOf(first)}`, "*"]) {
      const again = await get(path, { "if-none-match": known })
      expect([again.status, again.bytes.length, tagOf(again)]).toEqual([304, 0, tagOf(first)])
      expect(again.headers["cache-control"]).toBe("no-cache")
    }
    for (const other of ['"other"', tagOf(first).slice(1), ""]) {
      expect((await get(path, { "if-none-match": other })).status).toBe(200)
    }
  })

  it("that fits a packet is not gzipped", async () => {
    const { headers, bytes } = await get("/api/scheduler", { "accept-encoding": "gzip" })
    expect([headers["content-encoding"], bytes.length < 1400]).toEqual([undefined, true])
  })

  it.each(paths.filter((path) => path !== "/api/scheduler"))(
    "%s is gzipped for who takes that, under a tag of its own",
    async (path) => {
      const plain = await get(path)
      const zipped = await get(path, { "accept-encoding": "gzip, deflate, br" })
      expect(plain.headers["content-encoding"]).toBe(undefined)
      expect(zipped.headers["content-encoding"]).toBe("gzip")
      expect(gunzipSync(zipped.bytes).equals(plain.bytes)).toBe(true)
      expect(Number(zipped.headers["content-length"])).toBe(zipped.bytes.length)
      expect(zipped.bytes.length).toBeLessThan(plain.bytes.length / 2)
      expect(tagOf(zipped)).not.toBe(tagOf(plain))
      const init = { "accept-encoding": "gzip" }
      const has = async (tag: string, headers: Headers) =>
        (await get(path, { ...headers, "if-none-match": tag })).status
      expect(await has(tagOf(zipped), init)).toBe(304)
      expect(await has(tagOf(plain), init)).toBe(200)
      expect(await has(tagOf(zipped), {})).toBe(200)
    },
  )

  it.each([
    ["gzip;q=0", false],
    ["identity", false],
    ["*", true],
    ["*;q=0", false],
    ["gzip;q=0, *", false],
    ["br;q=1, GZIP;q=0.1", true],
    ["x-gzip", true],
    ["gzipped", false],
  ])("for Accept-Encoding: %s is gzipped: %s", async (accepted, is_zipped) => {
    const { headers } = await get("/api/dashboard", { "accept-encoding": accepted })
    expect(headers["content-encoding"] === "gzip").toBe(is_zipped)
  })

  it("to HEAD is the head of GET's", async () => {
    for (const headers of [{}, { "accept-encoding": "gzip" }]) {
      const whole = await get("/api/dashboard", headers)
      const head = await get("/api/dashboard", headers, "HEAD")
      const result = ["etag", "content-length", "content-encoding", "cache-control", "content-type"]
      for (const name of result) expect(head.headers[name]).toBe(whole.headers[name])
      expect([head.status, head.bytes.length]).toEqual([200, 0])
    }
  })

  it("has another tag when what it says has changed, and only then", async () => {
    const before = await Promise.all(paths.map((path) => get(path)))
    const writer = openWriter(served.path)
    writer.exec("update capital_feed set last_error = 'gone' where id = 'nfci'")
    writer.close()
    const after = await Promise.all(paths.map((path) => get(path)))
    const changed = paths.filter((_path, at) => {
      const [one, other] = [before[at], after[at]]
      return one === undefined || other === undefined || tagOf(one) !== tagOf(other)
    })
    expect(changed).toEqual(["/api/sources"])
  })
})

describe("pages of other origins", () => {
  const origin = "http://localhost:5173"
  const init = { "access-control-request-method": "GET" }

  it.each([...paths, "/health", "/api/none", "/api/tier/9/history"])(
    "may read %s when they are named",
    async (path) => {
      for (const named of [origin, "http://127.0.0.1:5173"]) {
        const { headers } = await get(path, { origin: named })
        expect(headers["access-control-allow-origin"]).toBe(named)
        expect(headers.vary).toBe("origin, accept-encoding")
      }
    },
  )

  it("may not when they are not named, but the answer still varies", async () => {
    for (const other of ["http://localhost:5174", "https://localhost:5173", "null", "*"]) {
      const { status, headers } = await get("/api/dashboard", { origin: other })
      expect([status, headers["access-control-allow-origin"]]).toEqual([200, undefined])
      expect(headers.vary).toBe("origin, accept-encoding")
    }
  })

  it.each([...paths, "/health"])("ask about %s first", async (path) => {
    const answer = await served.fetch(path, { method: "OPTIONS", headers: { ...init, origin } })
    expect([answer.status, await answer.text()]).toEqual([204, ""])
    expect(answer.headers.get("access-control-allow-origin")).toBe(origin)
    expect(answer.headers.get("access-control-allow-methods")).toContain("GET")
    expect(answer.headers.get("access-control-allow-headers")).toContain("authorization")
  })

  it.each([
    ["an origin that is not named", "/api/dashboard", { ...init, origin: "http://e.test" }],
    ["no origin", "/api/dashboard", init],
    ["an unsupported method", "/health", { "access-control-request-method": "PUT", origin }],
    ["no method", "/health", { origin }],
  ])("are refused with %s", async (_name, path, headers) => {
    const answer = await served.fetch(path, { method: "OPTIONS", headers })
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"])
    expect(answer.headers.get("access-control-allow-methods")).toBe(null)
  })

  it("are those that the settings name", async () => {
    const other = await startDashboard({ cors_origins: ["https://office.example"] })
    try {
      const of = async (origin: string) =>
        (await other.fetch("/health", { headers: { origin } })).headers.get(
          "access-control-allow-origin",
        )
      expect(await of("https://office.example")).toBe("https://office.example")
      expect(await of(origin)).toBe(null)
    } finally {
      await other.stop()
    }
  })
})
