/** The fact that each search leaves, and its outcome. Source: decisions, facts of searches. */
import { Schema } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { SearchFact } from "#schemas/carrier-search/search.ts"
import { until } from "../world/http.ts"
import { plain, type Searched, startSearch } from "./served.ts"

let served: Searched
beforeAll(async () => {
  served = await startSearch({ api: { request_timeout_seconds: 1 } })
})
afterAll(() => served.stop())
afterEach(async () => {
  Object.assign(served.script, plain)
  await served.facts()
})

const path = "/api/search?start=1&end=1000"

describe("a search leaves one fact", () => {
  it("when it is answered", async () => {
    const headers = { "x-request-id": "order-7" }
    for (const accept of ["application/json", "text/csv", "application/x-ndjson"]) {
      const before = new Date().toISOString()
      const answer = await served.fetch(path, { headers: { ...headers, accept } })
      await answer.text()
      const facts = await served.facts()
      expect(facts).toEqual([
        {
          at: expect.any(String),
          start: 1,
          end: 1000,
          registry: "fmcsa",
          outcome: "answered",
          reason: null,
          found: 333,
          answered: 1000,
          duration_ms: expect.any(Number),
          actor: "anonymous",
          request_id: answer.headers.get("x-request-id"),
          correlation_id: "order-7",
        },
      ])
      expect(Schema.is(SearchFact)(facts[0])).toBe(true)
      const { at = "" } = facts[0] ?? {}
      expect(at >= before && at <= new Date().toISOString()).toBe(true)
    }
  })

  it("when it failed, with how far it came", async () => {
    Object.assign(served.script, { at: 501 })
    await served.fetch(path)
    expect(await served.facts()).toMatchObject([
      {
        outcome: "failed",
        answered: 500,
        found: 166,
        reason:
          "registry lookup failed for 1 of 1000 MC numbers (first: 7, the web key is refused)",
      },
    ])
  })

  it.each(["application/json", "text/csv", "application/x-ndjson"])(
    "when the client went, which ends it at once: %s",
    async (accept) => {
      Object.assign(served.script, { at: 501, trouble: "hang" })
      const leaving = new AbortController()
      const init = { signal: leaving.signal, headers: { accept } }
      const response = served.fetch(path, init).then((answer) => answer.text())
      const { requests: before } = served.counts
      await until(() => served.counts.requests > before && served.counts.running === 1)
      leaving.abort()
      await response.catch(() => undefined)
      await until(() => served.counts.running === 0 && served.inFlight() === 0)
      const [fact, ...others] = await served.facts()
      expect(others).toEqual([])
      expect(fact).toMatchObject({ outcome: "abandoned", reason: null })
    },
  )

  it("when the server stops", async () => {
    const stopping = await startSearch()
    Object.assign(stopping.script, { at: 501, trouble: "hang" })
    const answer = stopping.fetch(path)
    await until(() => stopping.counts.running === 1)
    const stopped = stopping.stop()
    const { status } = await answer
    expect(status).toBe(503)
    await stopped
    expect(await stopping.facts()).toMatchObject([{ outcome: "abandoned", answered: 500 }])
  }, 20_000)
})

describe("the deadline of a request", () => {
  it("is none while a search is under way", async () => {
    // Ten pieces: more than twice the deadline.
    Object.assign(served.script, { pace_ms: 250 })
    const answer = await served.fetch(path)
    expect(answer.status).toBe(200)
    expect((await answer.json()).carriers).toHaveLength(333)
  }, 20_000)

  it("is none between lines, since progress keeps them moving", async () => {
    Object.assign(served.script, { pace_ms: 2500, piece: 1000 })
    const answer = await served.fetch(path, { headers: { accept: "application/x-ndjson" } })
    expect(await answer.text()).toContain('"summary"')
  }, 20_000)

  it("applies to a response that the client does not read", async () => {
    const answer = await served.fetch("/api/search?start=1&end=1000000")
    expect(answer.status).toBe(200)
    await until(() => served.inFlight() === 0)
    await expect(answer.text()).rejects.toThrow()
  }, 20_000)
})
