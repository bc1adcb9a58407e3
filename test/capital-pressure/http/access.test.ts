/** Read access to the dashboard: public, or restricted to `capital.token` if it is set. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { type HttpApi as Api, HttpApi } from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { developmentCredentials } from "#adapters/identity/development-credentials.ts"
import { identity } from "#adapters/identity/identity.ts"
import { openTokenStore } from "#adapters/identity/token-store.ts"
import { CapitalPressureApi } from "#gateway/capital-pressure/api.ts"
import { Identity } from "#gateway/identity.ts"
import { ownTokens } from "../../world/authenticate.ts"
import { type Dashboarded, startDashboard } from "../../world/capital-pressure/served.ts"
import { fillFile } from "../../world/capital-pressure/store-file.ts"
import { syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"
import { as } from "../../world/http.ts"
import { given } from "../../world/settings-given.ts"

const values: Readonly<Record<string, string>> = { metric_id: "nfci", tier: "1" }

/** Every path of the API, with parameters filled in. */
const paths: Array<string> = []
// Every HttpApi has these properties; the library erases their types in this way.
HttpApi.reflect(CapitalPressureApi as unknown as Api.Top, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint }) => {
    paths.push(endpoint.path.replace(/:(\w+)/g, (_whole, name: string) => values[name] ?? ""))
  },
})
const guarded = paths.filter((path) => path.startsWith("/api/"))

const token = "the-operator's-own"
const folder = mkdtempSync(join(tmpdir(), "almanac-access-"))
const scope = Effect.runSync(Scope.make())
/** Tokens of the development principals. */
let development: Readonly<Record<"admin" | "blob" | "tenant", { readonly token: string }>>
let open: Dashboarded
let closed: Dashboarded

beforeAll(async () => {
  const capital = { ...given({}).capital, token: Redacted.make(token) }
  const known = await Effect.runPromise(
    Effect.gen(function* () {
      const store = yield* openTokenStore(folder)
      const nats = { url: "nats://127.0.0.1:4222", user: "reader", password: "first" }
      const credentials = yield* developmentCredentials(folder, store, nats)
      const built = yield* Layer.build(identity(given({ capital }), ownTokens(store), credentials))
      return { credentials, ...Context.get(built, Identity) }
    }).pipe(Scope.provide(scope)),
  )
  development = known.credentials
  open = await startDashboard()
  closed = await startDashboard({ token: capital.token }, { authenticate: known.authenticate })
  for (const { path } of [open, closed]) fillFile(path, syntheticStore())
})
afterAll(async () => {
  await Promise.all([open.stop(), closed.stop()])
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

it("the API has the eight endpoints of the document and no other", () => {
  expect([...paths].sort()).toEqual([
    "/api/dashboard",
    "/api/metrics/nfci/detail",
    "/api/metrics/nfci/history",
    "/api/scheduler",
    "/api/sources",
    "/api/tier/1/history",
    "/api/watchlist",
    "/health",
  ])
})

describe("without capital.token", () => {
  it.each(paths)("%s is public, with any token", async (path) => {
    for (const headers of [{}, as("anything"), { "x-auth-token": "" }]) {
      expect((await open.fetch(path, { headers })).status).toBe(200)
    }
  })
})

describe("with capital.token", () => {
  it("/health is public still", async () => {
    expect((await closed.fetch("/health")).status).toBe(200)
  })

  it.each(guarded)("%s is for its bearer, and for operators", async (path) => {
    for (const known of [token, development.admin.token]) {
      expect((await closed.fetch(path, { headers: as(known) })).status).toBe(200)
    }
  })

  it.each(guarded)("%s is 401 for who has none that is known", async (path) => {
    const wrong = [{}, as("wrong"), as(`${token}x`), { authorization: `Basic ${btoa(token)}` }]
    for (const headers of wrong) {
      const answer = await closed.fetch(path, { headers })
      expect([answer.status, Object.keys(await answer.json())]).toEqual([401, ["detail"]])
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer realm=/)
    }
  })

  it.each(guarded)("%s is 403 for who has another service's token", async (path) => {
    for (const other of [development.blob.token, development.tenant.token]) {
      const answer = await closed.fetch(path, { headers: as(other) })
      expect([answer.status, Object.keys(await answer.json())]).toEqual([403, ["detail"]])
    }
  })

  it("returns nothing to callers without one: no 304, no 404 of a metric, no 422", async () => {
    const { headers } = await closed.fetch("/api/dashboard", { headers: as(token) })
    const etag = { "if-none-match": headers.get("etag") ?? "" }
    for (const path of ["/api/dashboard", "/api/metrics/none/detail", "/api/tier/9/history"]) {
      expect((await closed.fetch(path, { headers: etag })).status).toBe(401)
    }
    expect((await closed.fetch("/api/metrics/nfci/history?since=x")).status).toBe(401)
  })

  it("a page of an allowed origin sees the error; a preflight needs no token", async () => {
    const origin = "http://localhost:5173"
    const refused = await closed.fetch("/api/dashboard", { headers: { origin } })
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([
      401,
      origin,
    ])
    const headers = { origin, "access-control-request-method": "GET" }
    const response = await closed.fetch("/api/dashboard", { method: "OPTIONS", headers })
    expect([response.status, response.headers.get("access-control-allow-headers")]).toEqual([
      204,
      expect.stringContaining("authorization"),
    ])
  })
})
