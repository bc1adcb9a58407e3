import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { rateLimiter } from "#gateway/door/rate-limit.ts"
import { correlationId } from "#gateway/door/visit.ts"
import { as, type Served, settingsWith, startHttp } from "../world/http.ts"
import { probe, shown_position } from "./probe.ts"

let served: Served & { readonly stop: () => Promise<void> }
let settings = settingsWith()
beforeAll(async () => {
  const failing = { ...probe("broken", "/v1/cluster"), routes: Effect.die(new Error("no model")) }
  served = await startHttp([probe("blob-storage", "/v1/blobs"), failing], {
    current: () => settings,
  })
})
afterAll(() => served.stop())

const uuid = /^[\da-f]{8}-[\da-f]{4}-[78][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

const command = (headers: Readonly<Record<string, string>>, path = "/v1/blobs/command") =>
  served.fetch(path, { method: "POST", headers })

const idOf = async (answer: Response): Promise<string> => (await answer.json()).command_id

describe("ids", () => {
  it("the request id is fresh, regardless of the caller's headers", async () => {
    const ids = new Set<string | null>()
    for (let n = 0; n < 1000; n++) {
      const answer = await served.fetch("/none", { headers: { "x-request-id": "mine" } })
      ids.add(answer.headers.get("x-request-id"))
    }
    expect(ids.size).toBe(1000)
    for (const id of ids) expect(id).toMatch(uuid)
  })

  it("the beginning of a long one does not hold on to the rest of it", () => {
    setFlagsFromString("--expose-gc")
    const collect: () => void = runInNewContext("gc")
    const liveBytes = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = liveBytes()
    const kept = Array.from({ length: 4000 }, (_, n) => {
      const given = Buffer.alloc(14_000, "abcd"[n % 4]).toString("latin1")
      return correlationId({ "x-request-id": given }, "")
    })
    // Keeping all of the headers would take 56 MB.
    expect(liveBytes() - before).toBeLessThan(20_000_000)
    expect(new Set(kept)).toEqual(new Set(["a", "b", "c", "d"].map((one) => one.repeat(128))))
  })

  it("the caller's request id is kept as the correlation id", async () => {
    const headers = { ...as("reader"), "x-request-id": "order-7" }
    const answer = await served.fetch("/v1/blobs", { headers })
    expect(answer.headers.get("x-correlation-id")).toBe("order-7")
    const request_id = answer.headers.get("x-request-id")
    expect(await answer.json()).toMatchObject({ correlation_id: "order-7", request_id })
  })

  it("without one, the correlation id is the request id", async () => {
    const answer = await served.fetch("/none")
    expect(answer.headers.get("x-correlation-id")).toBe(answer.headers.get("x-request-id"))
  })

  it("a correlation id is bounded and holds printable characters only", async () => {
    const answer = await served.raw(
      `GET /none HTTP/1.1\r\nHost: a\r\nX-Request-Id: a \u00e9\tb${"x".repeat(300)}\r\n`,
      "Connection: close\r\n\r\n",
    )
    const [, id = ""] = /x-correlation-id: (.*)\r/i.exec(answer) ?? []
    expect(id).toMatch(/^abx{120,126}$/)
  })
})

describe("an Idempotency-Key", () => {
  it("names the same command each time, and another for another caller, path or key", async () => {
    const key = { "idempotency-key": "k1" }
    const first = await idOf(await command({ ...as("reader"), ...key }))
    expect(first).toMatch(uuid)
    expect(await idOf(await command({ ...as("reader"), ...key }))).toBe(first)
    const others = [
      await idOf(await command({ ...as("writer"), ...key })),
      await idOf(await command({ ...as("reader"), "idempotency-key": "k2" })),
      await idOf(await command({ ...as("reader"), ...key }, "/v1/blobs//command")),
      await idOf(await command(as("reader"))),
    ]
    expect(new Set([first, ...others]).size).toBe(5)
  })

  it.each([
    ["empty", ""],
    ["too long", "k".repeat(256)],
    ["not ASCII", "\u00e9"],
  ])("that is %s is 400", async (_name, key) => {
    const answer = await command({ ...as("reader"), "idempotency-key": key })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: "INVALID_ARGUMENT" })
  })

  it("of 255 characters is taken", async () => {
    expect((await command({ ...as("reader"), "idempotency-key": "k".repeat(255) })).status).toBe(
      200,
    )
  })
})

describe("X-Almanac-Position", () => {
  const at = (position: string) =>
    served.fetch("/v1/blobs", { headers: { ...as("reader"), "x-almanac-position": position } })

  it("that is shown is served", async () => {
    expect((await at(String(shown_position))).status).toBe(200)
  })

  it("that does not show in time is 503 with Retry-After", async () => {
    const answer = await at(String(shown_position + 1))
    expect(answer.status).toBe(503)
    expect(answer.headers.get("retry-after")).toBe("1")
  })

  it.each(["", "-1", "1.5", "x", "9".repeat(17), "9007199254740993"])(
    "%j is malformed: 400",
    async (position) => expect((await at(position)).status).toBe(400),
  )
})

describe("the rate limit", () => {
  it("returns 429 with Retry-After only to the caller whose bucket is empty", async () => {
    settings = settingsWith({ api: { rate_limit_per_second: 1, rate_limit_burst: 2 } })
    const answers = []
    for (let n = 0; n < 3; n++)
      answers.push(await served.fetch("/v1/blobs", { headers: as("reader") }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(answers[2]?.headers.get("retry-after")).toBe("1")
    expect(await answers[2]?.json()).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: "rate limit exceeded",
    })
    expect((await served.fetch("/v1/blobs", { headers: as("writer") })).status).toBe(200)
    settings = settingsWith()
    expect((await served.fetch("/v1/blobs", { headers: as("reader") })).status).toBe(200)
  })

  it("fills at its rate, up to its burst", () => {
    const take = rateLimiter()
    const rate = { rate_limit_per_second: 2, rate_limit_burst: 0 }
    expect([take("a", 0, rate), take("a", 0, rate), take("a", 0, rate)]).toEqual([0, 0, 1])
    expect([take("a", 500, rate), take("a", 500, rate)]).toEqual([0, 1])
    expect([1, 2, 3].map(() => take("a", 60_000, rate))).toEqual([0, 0, 1])
    expect(take("a", 50_000, rate)).toBe(1)
  })

  it("stores a bounded number of callers", () => {
    const take = rateLimiter()
    const rate = { rate_limit_per_second: 1, rate_limit_burst: 1 }
    take("first", 0, rate)
    for (let n = 0; n < 10_000; n++) take(`caller-${n}`, 0, rate)
    expect(take("first", 0, rate)).toBe(0)
  })
})

describe("a service that could not start", () => {
  it("answers 503 in its envelope and says why in the log; the others answer", async () => {
    const answer = await served.fetch("/v1/cluster", { headers: as("reader") })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ code: "UNAVAILABLE" })
    expect(served.logged.join("\n")).toContain("no model")
    expect((await served.fetch("/v1/blobs", { headers: as("reader") })).status).toBe(200)
  })
})
