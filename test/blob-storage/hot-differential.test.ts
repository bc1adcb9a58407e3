/**
 * The hot routes against the plain ones: the same requests in the same order to a server with and
 * to one without them are answered alike, but for ids and times. Source: decision 0114.
 */
import { Agent } from "node:http"
import { blake3 } from "@napi-rs/blake-hash"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { requestMetrics } from "#gateway/metrics.ts"
import { memoryStore, serveBlobs } from "./blob-service.ts"
import { ask, contents, requestsOf } from "./hot-request.ts"

const seed = Number(process.env.ALMANAC_SEED ?? 20_261_122)
const requests_count = Number(process.env.ALMANAC_REQUESTS ?? 900)

const ids = contents.map((bytes) => blake3(bytes).toString("hex").slice(0, 32))

const settings = { blob: { json_body_bytes_max: 1_200_000 } }
/** Too small for all contents at once, and for the largest of them. */
const small = { capacity_bytes: 1_000_000, size_max_bytes: 1_000_000 }

const side = (is_hot: boolean) =>
  Effect.gen(function* () {
    const store = yield* memoryStore(small)
    const requests = requestMetrics()
    const node = { node_id: "n1", active_nodes: 6 }
    const service = yield* serveBlobs({ store, settings, is_hot, requests, ...node })
    const agent = yield* Effect.acquireRelease(
      Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
      (agent) => Effect.sync(() => agent.destroy()),
    )
    return { ...service, agent, requests }
  })

/** Counts by route and status, without times. */
const counted = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("almanac_http_requests_total"))
    .toSorted()

/** Each of these is among the answers, or the requests have lost their variety. */
const all_statuses = [200, 206, 304, 400, 401, 403, 404, 409, 412, 413, 415, 416, 429, 500, 503]

describe("a hot route", () => {
  it(`answers as the plain one does (seed ${seed})`, { timeout: 120_000 }, () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const [hot, plain] = [yield* side(true), yield* side(false)]
          const statuses = new Set<number | undefined>()
          for (const [index, asked] of requestsOf(seed, requests_count, ids).entries()) {
            const [by_hot, by_plain] = yield* Effect.promise(() =>
              Promise.all([ask(hot.url, asked, hot.agent), ask(plain.url, asked, plain.agent)]),
            )
            const { body, ...shown } = asked
            const what = `seed ${seed}, request ${index}: ${JSON.stringify(shown)}, ${body?.length}`
            expect(by_hot, what).toEqual(by_plain)
            statuses.add(by_hot.status)
          }
          expect(all_statuses.filter((status) => !statuses.has(status))).toEqual([])
          expect(hot.inFlight()).toBe(0)
          expect(counted(hot.requests.text())).toEqual(counted(plain.requests.text()))
          const facts = yield* Effect.orDie(hot.store.scan(0, 1000))
          const others = yield* Effect.orDie(plain.store.scan(0, 1000))
          const known = facts.map(({ kind, id, size, actor }) => [kind, id, size, actor])
          expect(known).toEqual(others.map(({ kind, id, size, actor }) => [kind, id, size, actor]))
        }),
      ),
    ),
  )
})
