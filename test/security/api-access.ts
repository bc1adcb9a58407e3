/**
 * Tests of every operation in /openapi.json: who may call it, and that no request gets a 500, an
 * undocumented response, or none at all.
 */
import { createHmac } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { afterAll, assert, beforeAll, expect, it } from "vitest"
import { connect } from "../world/server/client.ts"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"
import { type ApiDocument, apiDocument, type Operation, wrongEnvelope } from "./api-document.ts"
import { fuzz } from "./fuzz.ts"

const seed = 146
/** Takes ten seconds on an idle machine. */
const fuzz_ms_max = 240_000
const secret = "an HS256 secret of these tests, long enough"

/** Operations without authentication. Adding one here is a deliberate decision. */
const open = [
  "GET /",
  "GET /openapi.json",
  "GET /v1/openapi.json",
  "GET /asyncapi.json",
  "GET /docs",
  "GET /livez",
  "GET /readyz",
  "GET /health",
  "GET /v1/service_info",
  "GET /console",
  "GET /carriers",
  "GET /plants",
  "GET /assets/{file}",
  "GET /api/search",
  "GET /api/search/sources",
  "POST /predict",
  "POST /predict/batch",
  "GET /predict/model",
  "GET /v2",
  "GET /v2/health/live",
  "GET /v2/health/ready",
  "GET /v2/models/{name}",
  "GET /v2/models/{name}/ready",
  "POST /v2/models/{name}/infer",
]

/**
 * Scopes or roles of which the caller needs one, by the first row that matches; a policy rule
 * decides for all other operations.
 */
const needed: ReadonlyArray<readonly [operation: RegExp, names: ReadonlyArray<string>]> = [
  [/^GET \/v1\/(events)?$|^POST \/v1\/events\/tickets$/, []],
  [/^GET \/v1\/cluster\/state$/, ["blobs:read", "cluster:admin"]],
  [/ \/v1\/cluster\//, ["cluster:admin"]],
  [/^GET \/v1\/blobs|^POST \/v1\/blobs\/(stat|get)$/, ["blobs:read"]],
  [/ \/v1\/blobs/, ["blobs:write"]],
  [/ \/v1\/webhooks/, ["member", "admin"]],
  [/^GET \/api\//, ["dashboard:read", "admin"]],
  [/ \/v1\/admin\/|^GET \/metrics$/, ["admin"]],
]

const scopes = ["blobs:read", "blobs:write", "cluster:admin", "dashboard:read"]
const roles = ["admin", "svc_admin", "member", "svc_domain_owner"]

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")

const jwt = (claims: object, { alg = "HS256", key = secret, exp_s = 600 } = {}) => {
  const exp = Math.floor(Date.now() / 1000) + exp_s
  const text = `${encoded({ alg, typ: "JWT" })}.${encoded({ sub: "tester", exp, ...claims })}`
  const signature = createHmac("sha256", key).update(text).digest("base64url")
  return `${text}.${alg === "none" ? "" : signature}`
}

const everything = { scope: scopes.join(" "), roles, project_id: "p", domain_id: "d" }

/** Invalid tokens, with various claims. */
const worthless: Readonly<Record<string, string>> = {
  unknown: "x".repeat(43),
  expired: jwt(everything, { exp_s: -1 }),
  unsigned: jwt(everything, { alg: "none" }),
  forged: jwt(everything, { key: "another secret that is as long as the first one" }),
  confused: jwt(everything, { alg: "RS256" }),
}

const some_id = "01234567-89ab-7def-8123-456789abcdef"
const concrete = (path: string) => path.replaceAll(/\{\w+\}/g, some_id)
const at = ({ path }: Operation) => concrete(path)
const nameOf = ({ method, path }: Operation) => `${method} ${path}`
const isOpen = ({ security }: Operation) => security.length === 0

/**
 * Scopes and roles of which an operation requires one; empty if a rule decides or any token will
 * do.
 */
const wanted = ({ security }: Operation) => security.flatMap(({ bearer = [] }) => bearer)
const isRuled = ({ security }: Operation) => security.some((one) => "keystone" in one)

interface World {
  readonly server: Server
  readonly document: ApiDocument
}

/** Calls each operation; returns those that respond with another status or a wrong envelope. */
const otherThan = async (
  { server }: World,
  status: number,
  operations: ReadonlyArray<Operation>,
  token: (operation: Operation) => string,
) => {
  const wrong: Array<string> = []
  for (const operation of operations) {
    const client = connect(server.url, token(operation))
    const headers = token(operation) === "" ? { authorization: "" } : {}
    const { method } = operation
    const got = await client.ask(method, at(operation), { headers })
    client.close()
    const body = JSON.parse(got.body.toString() || "null")
    const problem = got.status === status ? wrongEnvelope(operation.path, body) : got.status
    if (problem !== undefined) wrong.push(`${nameOf(operation)}: ${problem}`)
  }
  return wrong
}

const whoMay = (world: () => World) => {
  it("requires authentication on every path except an explicit list", () => {
    const { operations } = world().document
    expect(operations.filter(isOpen).map(nameOf).toSorted()).toEqual(open.toSorted())
    expect(operations.length).toBeGreaterThan(90)
  })

  it("requires the scopes and roles of a table, or a policy rule", () => {
    const closed = world().document.operations.filter((one) => !isOpen(one) && !isRuled(one))
    const reported = closed.map((one) => [nameOf(one), wanted(one)])
    const right = closed.map(nameOf).map((name) => {
      return [name, needed.find(([operation]) => operation.test(name))?.[1]]
    })
    expect(reported).toEqual(right)
  })

  it("401: each operation without a token, and with an invalid one", async () => {
    const closed = world().document.operations.filter((one) => !isOpen(one))
    expect(await otherThan(world(), 401, closed, () => "")).toEqual([])
    for (const [name, token] of Object.entries(worthless)) {
      expect(await otherThan(world(), 401, closed, () => token), name).toEqual([])
    }
  })

  it("403: each operation with a token that has everything except what it requires", async () => {
    const { operations } = world().document
    const guarded = operations.filter((one) => wanted(one).length > 0)
    expect(guarded.length).toBeGreaterThan(20)
    const lacking = (operation: Operation) => {
      const without = (all: ReadonlyArray<string>) =>
        all.filter((name) => !wanted(operation).includes(name))
      return jwt({ scope: without(scopes).join(" "), roles: without(roles) })
    }
    expect(await otherThan(world(), 403, guarded, lacking)).toEqual([])
    const ruled = operations.filter(isRuled)
    expect(ruled.length).toBeGreaterThan(40)
    const without_roles = jwt({ scope: scopes.join(" "), roles: [] })
    expect(await otherThan(world(), 403, ruled, () => without_roles)).toEqual([])
  })
}

/**
 * The expected Cache-Control of each operation for a caller with all rights, by the first row that
 * matches.
 */
const caching_of: ReadonlyArray<readonly [operation: RegExp, cache_control: RegExp]> = [
  [/^GET \/v1\/(openapi|service_info)/, /^$|no-cache/],
  [/^[A-Z]+ \/v1\/|^GET \/metrics/, /^no-store$|^private, no-cache$/],
  // With `capital.token` set, the dashboard requires a token.
  [/^GET \/api\/(?!search)/, /^no-store$|^private, no-cache$/],
]

/** The problem with a response's caching headers, if any. */
const wrongCaching = (operation: Operation, status: number, headers: IncomingHttpHeaders) => {
  const { "cache-control": control = "", vary = "", etag } = headers
  const names = vary.split(", ")
  const right = caching_of.find(([pattern]) => pattern.test(nameOf(operation)))?.[1]
  if (right !== undefined && status < 400 && !right.test(control)) return `is kept: "${control}"`
  if (status >= 400 && control !== "no-store") return `its ${status} is kept: "${control}"`
  if (isOpen(operation)) return undefined
  if (control === "private, no-cache" && etag === undefined) return "has nothing to ask again by"
  const lacking = ["authorization", "x-auth-token"].filter((name) => !names.includes(name))
  return lacking.length === 0 ? undefined : `does not vary by ${lacking}: "${vary}"`
}

const whatIsKept = (world: () => World) =>
  it("no-store, or private with an ETag, and Vary: each operation that is not public", async () => {
    const { server, document } = world()
    const wrong: Array<string> = []
    let succeeded = 0
    for (const token of [jwt(everything), "x".repeat(43)]) {
      const client = connect(server.url, token)
      for (const operation of document.operations.filter(({ path }) => path !== "/v1/events")) {
        const got = await client.ask(operation.method, at(operation))
        if (got.status < 400 && !isOpen(operation)) succeeded++
        const why = wrongCaching(operation, got.status, got.headers)
        if (why !== undefined) wrong.push(`${nameOf(operation)} ${got.status}: ${why}`)
      }
      client.close()
    }
    expect(wrong).toEqual([])
    expect(succeeded).toBeGreaterThan(20)
  })

/** Commands in JSON are small; bodies that carry bytes have limits and tests of their own. */
const command_bytes_max = 64 * 1024
const carries_bytes = new Set(["PUT /v1/blobs", "POST /v2/models/{name}/infer"])

const howMuch = (world: () => World) =>
  it("413: each operation that accepts a command in JSON, beyond 64 KiB", async () => {
    const { server, document } = world()
    const commands = document.operations.filter((one) => {
      const takes_json = one.requestBody?.content?.["application/json"] !== undefined
      return takes_json && !carries_bytes.has(nameOf(one))
    })
    expect(commands.length).toBeGreaterThan(15)
    const client = connect(server.url, jwt(everything))
    const headers = { "content-type": "application/json" }
    const body = JSON.stringify({ x: "x".repeat(command_bytes_max) })
    const wrong: Array<string> = []
    for (const operation of commands) {
      const got = await client.ask(operation.method, at(operation), { headers, body })
      const problem = wrongEnvelope(operation.path, JSON.parse(got.body.toString()))
      if (got.status !== 413 || problem)
        wrong.push(`${nameOf(operation)}: ${got.status} ${problem}`)
    }
    client.close()
    expect(wrong).toEqual([])
  })

/** The problem with the response to a method that a path does not support, if any. */
const wrongMethod = async ({ server, document }: World, path: string, method: string) => {
  const has = document.operations.filter((one) => one.path === path).map((one) => one.method)
  const head = concrete(path)
  // Two patterns may match the same path; the operation that responds then has its own test.
  const is_had = document.operations.some(
    (one) => one.method === method && patternOf(one.path).test(head),
  )
  if (is_had) return undefined
  const got = await fetch(new URL(head, server.url), { method })
  const allow = got.headers.get("allow")?.split(", ") ?? []
  if (![405, 501].includes(got.status)) return `${got.status}`
  if (!has.every((one) => allow.includes(one))) return `allows ${allow}`
  return wrongEnvelope(path, await got.json())
}

const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`)

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

/** The tests of one shape, with this many requests to each operation. */
export const everyOperation = (shape: "A" | "B", runs: number) => {
  let started: World
  const world = () => started
  beforeAll(async () => {
    const server = await startServer(newFolder(), {
      ALMANAC_API__SHAPE: shape,
      ALMANAC_AUTH__JWT__HS256_SECRET: secret,
      // Without a token, anyone may read the dashboard (decisions of document 3).
      ALMANAC_CAPITAL__TOKEN: "t".repeat(40),
    })
    const answer = await fetch(new URL("/openapi.json", server.url))
    started = { server, document: apiDocument(await answer.text()) }
  })
  afterAll(async () => {
    await started?.server.stop()
    await cleanUp()
  })

  whoMay(world)
  whatIsKept(world)
  howMuch(world)

  it("405 or 501: each other method of each path, with the allowed ones", async () => {
    const wrong: Array<string> = []
    for (const path of new Set(world().document.operations.map(({ path }) => path))) {
      for (const method of methods) {
        const why = await wrongMethod(world(), path, method)
        if (why !== undefined) wrong.push(`${method} ${path}: ${why}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it(
    "never returns 500 or an undocumented response, and never hangs, on any input",
    async () => {
      const { server } = world()
      const { requests, statuses, wrong } = await fuzz(server, seed, runs)
      assert.deepEqual(wrong.slice(0, 20), [], `seed ${seed}: ${JSON.stringify(statuses)}`)
      expect(requests).toBeGreaterThan(300)
      for (const status of [200, 201, 202, 400, 401, 403, 404]) {
        expect(statuses[status], `answers of ${status}`).toBeGreaterThan(0)
      }
      expect((await fetch(new URL("/livez", server.url))).status).toBe(200)
    },
    fuzz_ms_max,
  )
}
