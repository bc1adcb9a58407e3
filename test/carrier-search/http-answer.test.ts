/** Responses of a search. Source: document 3 §2 B, §4 B, §7 B; decisions, carrier range. */
import { existsSync, readdirSync, readlinkSync } from "node:fs"
import { Schema } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { failureText } from "#actors/carrier-search/registry.ts"
import { Line } from "#schemas/carrier-search/line.ts"
import { Sources } from "#schemas/carrier-search/source.ts"
import { until } from "../world/http.ts"
import { key_error, plain, type Searched, startSearch } from "./served.ts"

/** Larger responses go through a file. */
const answer_bytes_max = 64 * 1024

let served: Searched
beforeAll(async () => {
  served = await startSearch({}, { answer_bytes_max })
})
afterAll(() => served.stop())
afterEach(async () => {
  Object.assign(served.script, plain)
  await served.facts()
  await until(() => served.inFlight() === 0)
})

const search = (start: number, end: number, accept?: string) =>
  served.fetch(`/api/search?start=${start}&end=${end}`, {
    headers: accept === undefined ? {} : { accept },
  })

/** Where Linux lists the open files of this process. */
const descriptors = "/proc/self/fd"

/** Open files of waiting responses. */
const waiting = () =>
  readdirSync(descriptors).flatMap((fd) => {
    try {
      const target = readlinkSync(`${descriptors}/${fd}`)
      return target.includes("almanac-answer-") ? [target] : []
    } catch {
      return []
    }
  })

describe("a search as JSON", () => {
  it("has the fields of document 3 §2 B, and no others", async () => {
    const answer = await search(1, 5)
    expect(answer.status).toBe(200)
    expect(answer.headers.get("content-type")).toBe("application/json")
    expect(await answer.json()).toEqual({
      carriers: [
        { mcNumber: 3, name: "CARRIER 3", authorityStatus: "ACTIVE", operatingType: "CARRIER" },
      ],
    })
  })

  it("is an empty list when nothing matches", async () => {
    const answer = await search(1, 2)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ carriers: [] })
  })

  it("may not be kept, and depends on what is accepted", async () => {
    const { headers } = await search(1, 5)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("vary")).toBe("accept")
  })

  it("ascends by number, several carriers of one number side by side", async () => {
    served.script.namesOf = (mc) => (mc === 2 ? ["A", "B"] : [`N ${mc}`])
    served.script.piece = 1
    const { carriers } = await (await search(1, 3)).json()
    expect(carriers.map(({ name }: { name: string }) => name)).toEqual(["N 1", "A", "B", "N 3"])
  })

  it("keeps each name as it is", async () => {
    const names = ['A "B" \\ C', "Ü Ж 運輸 \u{1f69a}", "line\nbreak", "\u0007</script>", ",\n"]
    served.script.namesOf = (mc) => [names[mc - 1] ?? ""]
    const { carriers } = await (await search(1, names.length)).json()
    expect(carriers.map(({ name }: { name: string }) => name)).toEqual(names)
  })

  it("says its length before it comes, from memory and from a file", async () => {
    for (const [end, is_large] of [
      [10, false],
      [30_000, true],
    ] as const) {
      const answer = await search(1, end)
      const text = await answer.text()
      expect(Number(answer.headers.get("content-length"))).toBe(Buffer.byteLength(text))
      expect(JSON.parse(text).carriers).toHaveLength(Math.floor(end / 3))
      expect(text.length > 4 * answer_bytes_max).toBe(is_large)
    }
  })

  it.runIf(existsSync(descriptors))(
    "uses a private temporary file, which is deleted afterwards",
    async () => {
      Object.assign(served.script, { at: 60_000, trouble: "hang" })
      const leaving = new AbortController()
      const path = "/api/search?start=1&end=60000"
      const answer = served.fetch(path, { signal: leaving.signal }).catch(() => undefined)
      // Opened, then deleted at once.
      await until(() => waiting().some((target) => target.endsWith(" (deleted)")))
      expect(waiting()).toHaveLength(1)
      expect(readdirSync(served.folder)).toEqual([])
      leaving.abort()
      await answer
      await until(() => waiting().length === 0)
      Object.assign(served.script, plain)
      await (await search(1, 60_000)).text()
      await until(() => waiting().length === 0)
    },
  )

  it.runIf(existsSync(descriptors))(
    "leaves nothing behind when the client goes in the middle of the answer",
    async () => {
      const answer = await search(1, 600_000)
      const reader = answer.body?.getReader()
      await reader?.read()
      await reader?.cancel()
      await until(() => waiting().length === 0 && served.inFlight() === 0)
    },
  )
})

describe("a registry that does not answer for each number", () => {
  const text = failureText(key_error, 1000)

  it("is 502 with how many and the first, and nothing partial", async () => {
    Object.assign(served.script, { at: 900 })
    const answer = await search(1, 1000)
    expect(answer.status).toBe(502)
    expect(await answer.json()).toEqual({ error: text })
    expect(text).toBe(
      "registry lookup failed for 1 of 1000 MC numbers (first: 7, the web key is refused)",
    )
  })

  it("is 502 in the same words for a table", async () => {
    Object.assign(served.script, { at: 900 })
    const answer = await search(1, 1000, "text/csv")
    expect(answer.status).toBe(502)
    expect(answer.headers.get("content-disposition")).toBeNull()
    expect(await answer.json()).toEqual({ error: text })
  })

  it("is the last line of lines", async () => {
    Object.assign(served.script, { at: 900 })
    const answer = await search(1, 1000, "application/x-ndjson")
    expect(answer.status).toBe(200)
    const lines = (await answer.text()).trimEnd().split("\n")
    expect(JSON.parse(lines.at(-1) ?? "")).toEqual({ error: text })
    expect(lines.filter((line) => line.includes("summary"))).toEqual([])
  })

  it("is 500 without its cause when the fault is ours, or numbers are left out", async () => {
    for (const trouble of ["die", "end"] as const) {
      Object.assign(served.script, { at: 501, trouble })
      const answer = await search(1, 1000)
      expect(answer.status).toBe(500)
      expect(await answer.json()).toEqual({ error: "internal error" })
      const lines = await (await search(1, 1000, "application/x-ndjson")).text()
      expect(lines.trimEnd().split("\n").at(-1)).toBe('{"error":"internal error"}')
      const outcomes = (await served.facts()).map(({ outcome, reason }) => [outcome, reason])
      expect(outcomes).toEqual([
        ["failed", "internal error"],
        ["failed", "internal error"],
      ])
    }
    expect(served.logged.join("\n")).toContain("results for 500 of 1000 numbers")
  })

  it("is 502 that says what to do where none is set up", async () => {
    served.script.none = "no registry: set one up"
    for (const accept of ["application/json", "text/csv", "application/x-ndjson"]) {
      const answer = await search(1, 5, accept)
      expect(answer.status).toBe(502)
      expect(await answer.json()).toEqual({ error: "no registry: set one up" })
    }
    const facts = await served.facts()
    expect(facts).toHaveLength(3)
    expect(facts[0]).toMatchObject({
      outcome: "failed",
      registry: "none",
      reason: "no registry: set one up",
    })
  })
})

describe("a search as CSV", () => {
  it("is a table with a header, as an attachment", async () => {
    served.script.namesOf = (mc) => [mc === 1 ? 'A, "B"' : "=1+1"]
    const answer = await search(1, 2, "text/csv")
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8")
    expect(answer.headers.get("content-disposition")).toBe(
      'attachment; filename="carriers-1-2.csv"',
    )
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(await answer.text()).toBe(
      "mcNumber,name,authorityStatus,operatingType\r\n" +
        '1,"A, ""B""",ACTIVE,CARRIER\r\n' +
        "2,'=1+1,ACTIVE,CARRIER\r\n",
    )
  })

  it("is the header alone when nothing matches", async () => {
    const text = await (await search(1, 2, "text/csv")).text()
    expect(text).toBe("mcNumber,name,authorityStatus,operatingType\r\n")
  })

  it("says its length before it comes, from a file too", async () => {
    const answer = await search(1, 60_000, "text/csv")
    const text = await answer.text()
    expect(Number(answer.headers.get("content-length"))).toBe(text.length)
    expect(text.split("\r\n")).toHaveLength(20_000 + 2)
  })
})

describe("a search as lines", () => {
  const lines = async (answer: Response) =>
    (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))

  it("has progress at the beginning, records, and the counts at the end", async () => {
    const answer = await search(1, 6, "application/x-ndjson")
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson")
    expect(answer.headers.get("cache-control")).toBe("no-store")
    const all = await lines(answer)
    const record = { authorityStatus: "ACTIVE", operatingType: "CARRIER" }
    expect(all.slice(0, -1)).toEqual([
      { progress: { done: 0, total: 6, found: 0 } },
      { mcNumber: 3, name: "CARRIER 3", ...record },
      { mcNumber: 6, name: "CARRIER 6", ...record },
    ])
    const { summary } = all.at(-1)
    expect(summary).toEqual({
      total: 6,
      found: 2,
      registry: "fmcsa",
      duration_ms: expect.any(Number),
    })
    const isLine = Schema.is(Line)
    for (const line of all) expect(isLine(line)).toBe(true)
  })

  it("comes as it is found, with progress while nothing is", async () => {
    Object.assign(served.script, { piece: 1, at: 4, trouble: "hang" })
    const leaving = new AbortController()
    const answer = await served.fetch("/api/search?start=1&end=9", {
      headers: { accept: "application/x-ndjson" },
      signal: leaving.signal,
    })
    let text = ""
    const read = async () => {
      for await (const part of answer.body ?? []) text += Buffer.from(part).toString()
    }
    const reading = read().catch(() => undefined)
    const later = '{"progress":{"done":3,"total":9,"found":1}}'
    await until(() => text.split(later).length > 2)
    expect(text).toContain('"mcNumber":3')
    leaving.abort()
    await reading
    await until(() => served.counts.running === 0)
    const [fact] = await served.facts()
    expect(fact).toMatchObject({ outcome: "abandoned", answered: 3, found: 1, reason: null })
  })

  it("is not held in memory for a client that does not read", async () => {
    Object.assign(served.script, { piece: 10_000 })
    const leaving = new AbortController()
    const answer = await served.fetch("/api/search?start=1&end=1000000", {
      headers: { accept: "application/x-ndjson" },
      signal: leaving.signal,
    })
    expect(answer.status).toBe(200)
    // Two progress intervals: without backpressure the search would have finished by now.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    expect(served.counts.running).toBe(1)
    leaving.abort()
    await until(() => served.counts.running === 0)
  })
})

describe("a response that no registry can produce", () => {
  it("is 406 with what there is", async () => {
    const answer = await search(1, 5, "text/plain")
    expect(answer.status).toBe(406)
    const error = "a search returns application/json, application/x-ndjson, text/csv"
    expect(await answer.json()).toEqual({ error })
    expect(await served.facts()).toEqual([])
  })

  it("is 405 to another method, with what there is", async () => {
    const answer = await served.fetch("/api/search?start=1&end=2", { method: "POST" })
    expect(answer.status).toBe(405)
    expect(answer.headers.get("allow")).toBe("GET, HEAD")
    expect(await answer.json()).toEqual({
      error: "POST is not allowed on this path; use GET or HEAD.",
    })
  })

  it("is 404 below the path", async () => {
    expect((await served.fetch("/api/search/1")).status).toBe(404)
  })
})

describe("HEAD", () => {
  it("answers the head alone, asks no registry and leaves no fact", async () => {
    const { requests } = served.counts
    const path = "/api/search?start=1&end=9"
    const answer = await served.fetch(path, { method: "HEAD", headers: { accept: "text/csv" } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8")
    expect(answer.headers.get("content-disposition")).toContain("carriers-1-9.csv")
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(await answer.text()).toBe("")
    expect(served.counts.requests).toBe(requests)
    expect(await served.facts()).toEqual([])
  })

  it("refuses as GET does", async () => {
    const head = async (path: string, accept = "*/*") =>
      (await served.fetch(path, { method: "HEAD", headers: { accept } })).status
    expect(await head("/api/search?start=9&end=1")).toBe(400)
    expect(await head("/api/search?start=1&end=9", "text/html")).toBe(406)
    served.script.none = "no registry"
    expect(await head("/api/search?start=1&end=9")).toBe(502)
    expect(await served.facts()).toEqual([])
  })
})

describe("who may search", () => {
  it("is open to everyone, with any token", async () => {
    const path = "/api/search?start=1&end=2"
    const headers = { authorization: "Bearer expired", "x-auth-token": "unknown" }
    expect((await served.fetch(path)).status).toBe(200)
    expect((await served.fetch(path, { headers })).status).toBe(200)
  })

  it("as often as anything else is asked: above that it is 429", async () => {
    const limited = await startSearch({ api: { rate_limit_per_second: 1 } })
    const statuses: Array<number> = []
    let refused: Response | undefined
    for (let n = 0; n < 3; n++) {
      const answer = await limited.fetch("/api/search?start=1&end=2")
      statuses.push(answer.status)
      if (answer.status === 429) refused = answer
    }
    expect(statuses[0]).toBe(200)
    expect(refused?.headers.get("retry-after")).toBe("1")
    expect(await refused?.json()).toEqual({ error: "Too many requests: wait 1 s." })
    await limited.stop()
  })

  it("no page of another origin, by its browser", async () => {
    const headers = { origin: "http://localhost:5173" }
    const answer = await served.fetch("/api/search?start=1&end=2", { headers })
    expect(answer.headers.get("access-control-allow-origin")).toBeNull()
  })
})

describe("GET /api/search/sources", () => {
  it("reports the registry in use, its age and its health", async () => {
    const answer = await served.fetch("/api/search/sources")
    expect(answer.status).toBe(200)
    const body = await answer.json()
    expect(Schema.is(Sources)(body)).toBe(true)
    expect(body.sources[0]).toMatchObject({ registry: "fmcsa", is_healthy: true, concurrency: 8 })
  })
})
