/**
 * Kept answers against plain ones: the same requests in the same order, while all that answers
 * depend on changes, to a server that keeps answers and one that does not. Source: decision 0149.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, type Scope } from "effect"
import { describe, expect, it } from "vitest"
import { seeded } from "../process/seeded.ts"
import { type Asked, ask, makeWorld, rulesOf, serveRows, type World } from "./kept-rows.ts"

const seed = Number(process.env.ALMANAC_SEED ?? 20_261_122)
const requests_count = Number(process.env.ALMANAC_REQUESTS ?? 1500)

/** Requests between two changes, and those that are asked again. */
const changed_after = 20
const recent_max = 4

type Draw = <A>(choices: ReadonlyArray<A>) => A

const drawing = (seed: number) => {
  const { next } = seeded(seed)
  // The index is below the length, and no list is empty.
  const draw: Draw = (choices) =>
    choices[Math.floor(next() * choices.length)] as (typeof choices)[0]
  return draw
}

type Some = Readonly<Record<string, string>>

const credentials = (draw: Draw): Some =>
  draw<Some>([
    ...Array.from({ length: 6 }, () => ({ authorization: "Bearer member" })),
    { authorization: "Bearer other" },
    { "x-auth-token": "member" },
    { "x-auth-token": "é" },
    { authorization: "Bearer admin" },
    { authorization: "Bearer asked" },
    {},
    {},
    { authorization: "Bearer nobody" },
    { authorization: "Bearer outage" },
    { authorization: "Basic eA==" },
    { authorization: "Bearer other", "x-auth-token": "admin" },
  ])

const odd = (draw: Draw): Some =>
  draw<Some>([
    ...Array.from({ length: 12 }, () => ({})),
    { accept: "application/json" },
    { accept: "text/html" },
    { "accept-encoding": "gzip" },
    { "x-request-id": "mine" },
    { "x-request-id": "yours" },
    { "x-request-id": "\t" },
    { "x-almanac-position": "3" },
    { "x-almanac-position": "99" },
    { "x-almanac-position": "soon" },
    { "if-none-match": "*" },
    { origin: "http://a.example" },
    { connection: "close" },
    { "idempotency-key": "k" },
    { "content-length": "0" },
    { traceparent: "00-1-1-00" },
    { host: "b.example" },
  ])

const paths = [
  "/v1/rows/a",
  "/v1/rows/a",
  "/v1/rows/b",
  "/v1/rows/c",
  "/v1/rows/none",
  "/v1/rows",
  "/v1/rows/",
  "//v1/rows/a",
  "/v1/rows/%61",
  "/v1/rows/%zz",
  "/v1/rows?limit=1",
  "/v1/rows?limit=no",
  "/v1/rows/a?more=1",
  "/api/rows",
  "/api/rows",
  "/v1/word",
  "/v1/now",
]

const requestOf = (draw: Draw): Asked => ({
  method: draw([...Array.from({ length: 20 }, () => "GET"), "HEAD", "HEAD", "POST", "PATCH"]),
  path: draw(paths),
  // The port, which it else names, is not the same.
  headers: { host: "a.example", ...credentials(draw), ...odd(draw) },
})

const withSettings = (
  world: World,
  section: "metrics" | "api" | "capital" | "telemetry",
  values: object,
) => {
  const { settings } = world
  world.settings = { ...settings, [section]: Object.assign({}, settings[section], values) }
}

/** What may happen between two requests; rarely, or nothing would ever be given again. */
const changes: ReadonlyArray<(world: World, draw: Draw) => void> = [
  (world, draw) => {
    world.rows.set(draw(["a", "b"]), draw(["1", "2", "3"]))
    world.shown = {}
    world.position++
  },
  (world, draw) => {
    if (!world.rows.delete("a")) world.rows.set("a", draw(["1", "2"]))
    world.shown = {}
  },
  (world, draw) => {
    world.rules = rulesOf(draw(["role:member", "role:admin", "!", "@"]))
  },
  (world, draw) => withSettings(world, "metrics", { public: draw([true, false]) }),
  (world, draw) =>
    withSettings(world, "capital", { cors_origins: draw([[], ["http://a.example"]]) }),
  (world, draw) => {
    const rate = { rate_limit_per_second: draw([0, 0, 0, 1]) }
    withSettings(world, "api", { ...rate, rate_limit_burst: 5 })
  },
  (world) => {
    const member = world.callers.get("member")
    if (member === undefined)
      world.callers.set("member", makeWorld().callers.get("member") ?? never())
    else world.callers.delete("member")
  },
]

const never = () => {
  throw new Error("a world without its member")
}

const counted = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("almanac_http_requests_total"))
    .toSorted()

/** Each of these is among the answers, or the requests have lost their variety. */
const all_statuses = [200, 400, 401, 403, 404, 405, 429, 503]

const sides = Effect.gen(function* () {
  const world = makeWorld()
  return { world, kept: yield* serveRows(world, true), plain: yield* serveRows(world, false) }
})

const running = (test: Effect.Effect<void, unknown, Scope.Scope>) =>
  Effect.runPromise(Effect.scoped(test))

/** Bytes of what is reachable now. */
const liveBytes = () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  collect()
  return process.memoryUsage().heapUsed
}

describe("a kept answer", () => {
  it(`is what the plain route answers (seed ${seed})`, { timeout: 120_000 }, () =>
    running(
      Effect.gen(function* () {
        const { world, kept, plain } = yield* sides
        const draw = drawing(seed)
        const statuses = new Set<number | undefined>()
        const ids = new Set<string>()
        const recent: Array<Asked> = []
        for (let n = 0; n < requests_count; n++) {
          if (n % changed_after === 0) draw(changes)(world, draw)
          // Whoever polls asks the same again.
          const asked = draw([requestOf(draw), ...recent])
          recent.unshift(asked)
          recent.length = Math.min(recent.length, recent_max)
          const [one, other] = yield* Effect.promise(() =>
            Promise.all([ask(kept.url, asked, kept.agent), ask(plain.url, asked, plain.agent)]),
          )
          const what = `seed ${seed}, request ${n}: ${JSON.stringify(asked)}`
          expect({ ...one, request_id: "" }, what).toEqual({ ...other, request_id: "" })
          statuses.add(one.status)
          ids.add(one.request_id)
        }
        expect(all_statuses.filter((status) => !statuses.has(status))).toEqual([])
        expect(ids.size).toBe(requests_count)
        expect(counted(kept.requests.text())).toEqual(counted(plain.requests.text()))
        expect(kept.inFlight()).toBe(0)
        // Else nothing was compared.
        expect(kept.asked()).toBeLessThan(plain.asked() * 0.8)
      }),
    ),
  )

  const get = (path: string, headers: Some = { authorization: "Bearer member" }): Asked => ({
    method: "GET",
    path,
    headers,
  })
  const asking = Effect.fnUntraced(function* (world: World) {
    const served = yield* serveRows(world, true)
    return {
      asked: served.asked,
      drain: served.drain,
      ask: (path: string, headers?: Some) =>
        Effect.promise(() => ask(served.url, get(path, headers), served.agent)),
    }
  })

  it("is one caller's alone, and is found again by the same request only", () =>
    running(
      Effect.gen(function* () {
        const { ask, asked } = yield* asking(makeWorld())
        for (const token of ["member", "other", "member"]) {
          const { body } = yield* ask("/v1/rows/a", { authorization: `Bearer ${token}` })
          expect(JSON.parse(body).seen_by).toBe(token)
        }
        expect(asked()).toBe(2)
        yield* ask("/v1/rows/a", { "x-auth-token": "member" })
        expect(asked()).toBe(2)
        yield* ask("/v1/rows/a", { authorization: "Bearer member", accept: "application/json" })
        yield* ask("/v1/rows/a?more=1", { authorization: "Bearer member" })
        expect(asked()).toBe(4)
      }),
    ))

  it("is none that was made while something changed", () =>
    running(
      Effect.gen(function* () {
        const world = makeWorld()
        const { ask, asked } = yield* asking(world)
        world.meanwhile = () => {
          world.rows.set("a", "newer")
          world.shown = {}
        }
        yield* ask("/v1/rows/a")
        world.meanwhile = () => undefined
        expect(JSON.parse((yield* ask("/v1/rows/a")).body).value).toBe("newer")
        expect(asked()).toBe(2)
      }),
    ))

  it("is none under other rules or settings", () =>
    running(
      Effect.gen(function* () {
        const world = makeWorld()
        const { ask } = yield* asking(world)
        const statusOf = (path: string, headers?: Some) =>
          Effect.map(ask(path, headers), ({ status }) => status)
        yield* ask("/v1/rows/a")
        expect(yield* statusOf("/v1/rows/a")).toBe(200)
        world.rules = rulesOf("role:admin")
        expect(yield* statusOf("/v1/rows/a")).toBe(403)
        withSettings(world, "metrics", { public: true })
        yield* ask("/api/rows", {})
        expect(yield* statusOf("/api/rows", {})).toBe(200)
        withSettings(world, "metrics", { public: false })
        expect(yield* statusOf("/api/rows", {})).toBe(401)
      }),
    ))

  it("is none under rules or settings that came while its request waited", () =>
    running(
      Effect.gen(function* () {
        const world = makeWorld()
        const { ask } = yield* asking(world)
        const waiting = { "x-almanac-position": "3" }
        const member = { authorization: "Bearer member", ...waiting }
        world.waiting = () => {
          world.rules = rulesOf("role:admin")
        }
        expect((yield* ask("/v1/rows/a", member)).status).toBe(200)
        expect((yield* ask("/v1/rows/a", member)).status).toBe(403)
        withSettings(world, "metrics", { public: true })
        world.waiting = () => withSettings(world, "metrics", { public: false })
        expect((yield* ask("/api/rows", waiting)).status).toBe(200)
        expect((yield* ask("/api/rows", waiting)).status).toBe(401)
      }),
    ))

  it("is the last on its connection while the server drains", () =>
    running(
      Effect.gen(function* () {
        const { ask, asked, drain } = yield* asking(makeWorld())
        const connectionOf = Effect.map(ask("/v1/rows/a"), ({ headers }) =>
          headers.find((line) => /^connection/i.test(line)),
        )
        yield* connectionOf
        expect(yield* connectionOf).toBe("Connection: keep-alive")
        yield* Effect.forkScoped(drain(60), { startImmediately: true })
        expect(yield* connectionOf).toBe("Connection: close")
        expect(asked()).toBe(1)
      }),
    ))

  it("is none while requests are traced, or where the service cannot tell", () =>
    running(
      Effect.gen(function* () {
        const world = makeWorld()
        const { ask, asked } = yield* asking(world)
        withSettings(world, "telemetry", { otlp_url: "http://127.0.0.1:9" })
        yield* ask("/v1/rows/a")
        yield* ask("/v1/rows/a")
        expect(asked()).toBe(2)
        withSettings(world, "telemetry", { otlp_url: "" })
        world.shown = undefined
        yield* ask("/v1/rows/a")
        yield* ask("/v1/rows/a")
        expect(asked()).toBe(4)
      }),
    ))

  it("makes room for newer ones, but not where it is asked for again and again", () =>
    running(
      Effect.gen(function* () {
        const world = makeWorld()
        const ids = Array.from({ length: 20 }, (_, n) => `large-${n}`)
        for (const id of ids) world.rows.set(id, "x".repeat(1_000_000))
        const { ask, asked } = yield* asking(world)
        for (const id of ids) {
          yield* ask("/v1/rows/a")
          yield* ask(`/v1/rows/${id}`)
        }
        // 16 MiB hold 16 of them.
        expect(asked()).toBe(21)
        yield* ask("/v1/rows/large-19")
        yield* ask("/v1/rows/a")
        expect(asked()).toBe(21)
        yield* ask("/v1/rows/large-0")
        expect(asked()).toBe(22)
        world.rows.set("huge", "x".repeat(2 ** 20))
        yield* ask("/v1/rows/huge")
        yield* ask("/v1/rows/huge")
        expect(asked()).toBe(24)
      }),
    ))

  it("holds nothing of its request but what finds it", () =>
    running(
      Effect.gen(function* () {
        const { ask, asked } = yield* asking(makeWorld())
        const askAll = Effect.fnUntraced(function* (kind: string, headers: Some) {
          for (let n = 0; n < 500; n++) yield* ask(`/v1/word?${kind}=${n}`, headers)
          return liveBytes()
        })
        const before = yield* askAll("few", {})
        // Only its first 128 characters are the answer's.
        const after = yield* askAll("many", { "x-request-id": "i".repeat(15_000) })
        expect(asked()).toBe(1000)
        expect(after - before).toBeLessThan(3_000_000)
      }),
    ))
})
