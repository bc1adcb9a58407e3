import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compress } from "#adapters/http/page-files.ts"
import { processMetrics } from "#adapters/process-metrics.ts"
import { requestMetrics } from "#gateway/metrics.ts"
import type { Mounted } from "#gateway/routes.ts"
import { healthService } from "#gateway/system/health.ts"
import { prefersHtml } from "#gateway/system/pages.ts"
import { systemService } from "#gateway/system/service.ts"
import { as, type Served, settingsWith, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const blobs = probe("blob-storage", "/v1/blobs")
let ready: string | undefined
let is_ending = false
let breaks_note = false
let settings = settingsWith()
const requests = requestMetrics()
const scope = Effect.runSync(Scope.make())
let served: Served & { readonly stop: () => Promise<void> }

/** The part of a service that readiness and documents use; its routes are served separately. */
const mounted = {
  name: "blob-storage",
  api: blobs.api as unknown as Mounted["api"], // erased as mount erases it
  app: undefined,
  waitFor: () => Effect.void,
  ready: Effect.suspend(() => {
    if (ready === "breaks") return Effect.die("no database")
    return ready === "never" ? Effect.never : Effect.succeed(ready)
  }),
  note: Effect.suspend(() => (breaks_note ? Effect.die("no database") : Effect.undefined)),
} satisfies Mounted

beforeAll(async () => {
  const services = [mounted]
  const [system, health] = await Effect.runPromise(
    Effect.gen(function* () {
      const process = yield* processMetrics
      const metrics = Effect.map(process, (text) => requests.text() + text)
      const health = healthService({ services, metrics, isEnding: () => is_ending })
      return [yield* systemService({ services, compress }), health] as const
    }).pipe(Scope.provide(scope)),
  )
  served = await startHttp([blobs, system, health], { current: () => settings, requests })
})
afterAll(async () => {
  await served.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

describe("/", () => {
  it("is the version document for programs, without a token", async () => {
    const answer = await served.fetch("/")
    expect(answer.status).toBe(300)
    expect(await answer.json()).toEqual({
      versions: [{ id: "v1.0", status: "CURRENT", links: [{ rel: "self", href: "/v1/" }] }],
    })
    expect(answer.headers.get("vary")).toBe("accept")
  })

  it("is a page for browsers", async () => {
    const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    const answer = await served.fetch("/", { headers: { accept } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get("content-type")).toMatch(/^text\/html/)
    expect(await answer.text()).toContain("blob-storage")
  })

  it.each([
    ["*/*", false],
    ["application/json, text/html;q=0.9", false],
    ["text/html;q=0", false],
    ["text/html", true],
    ["application/json;q=0.5, text/html", true],
  ])("Accept: %s prefers a page: %s", (accept, wanted) => expect(prefersHtml(accept)).toBe(wanted))
})

describe("/v1/", () => {
  it("needs a token", async () => {
    expect((await served.fetch("/v1/")).status).toBe(401)
    const answer = await served.fetch("/v1/", { headers: as("reader") })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ version: { id: "v1.0" } })
  })
})

interface Operation {
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly responses: Readonly<Record<string, object>>
}

describe("the OpenAPI document", () => {
  it("is the same at both places, public, version 0.1.0 of OpenAPI 3.1", async () => {
    const one = await served.fetch("/openapi.json")
    expect(one.status).toBe(200)
    const document = await one.json()
    expect(document).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\.\d$/),
      info: { title: "Almanac", version: "0.1.0" },
      components: { securitySchemes: { bearer: { scheme: "bearer" } } },
    })
    expect(await (await served.fetch("/v1/openapi.json")).json()).toEqual(document)
  })

  it("says of each operation who may use it and what errors it has", async () => {
    const { paths } = await (await served.fetch("/openapi.json")).json()
    const operation: Operation = paths["/v1/blobs/item/{id}"].delete
    expect(operation.security[0]).toEqual({ bearer: ["blobs:write"] })
    expect(paths["/livez"].get.security).toEqual([])
    expect(paths["/metrics"].get.security[0]).toEqual({ bearer: ["admin"] })
    const statuses = ["200", "400", "401", "403", "413", "415", "422", "429", "500", "503", "504"]
    expect(Object.keys(operation.responses)).toEqual(statuses)
  })

  it("has only references that lead somewhere", async () => {
    const text = await (await served.fetch("/openapi.json")).text()
    const { components } = JSON.parse(text)
    const names = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(components.schemas).toHaveProperty([String(name)])
    expect(components.schemas.BlobError.required).toEqual([
      "code",
      "message",
      "detail",
      "request_id",
    ])
  })
})

describe("health", () => {
  it("/livez answers while the process lives", async () => {
    expect(await (await served.fetch("/livez")).text()).toBe("ok\n")
  })

  it.each([
    [undefined, 200, "blob-storage ok\n"],
    ["the volume is read-only", 503, "blob-storage the volume is read-only\n"],
    ["never", 503, "blob-storage does not respond\n"],
    ["breaks", 503, "blob-storage failed its readiness check: see the server's log\n"],
  ])("/readyz of a service that says %s is %i", async (reported, status, text) => {
    ready = reported
    const answer = await served.fetch("/readyz")
    expect([answer.status, await answer.text()]).toEqual([status, text])
  })

  it("/readyz of a service whose note breaks is as without a note", async () => {
    ready = undefined
    breaks_note = true
    const answer = await served.fetch("/readyz")
    breaks_note = false
    expect([answer.status, await answer.text()]).toEqual([200, "blob-storage ok\n"])
  })
})

describe("a process that received a stop signal", () => {
  it("lives, and is not ready any more", async () => {
    ready = undefined
    is_ending = true
    const answer = await served.fetch("/readyz")
    expect([answer.status, await answer.text()]).toEqual([503, "almanac is stopping\n"])
    expect((await served.fetch("/livez")).status).toBe(200)
    is_ending = false
    expect((await served.fetch("/readyz")).status).toBe(200)
  })
})

describe("/metrics", () => {
  it("is the operators', unless metrics.public", async () => {
    expect((await served.fetch("/metrics")).status).toBe(401)
    expect((await served.fetch("/metrics", { headers: as("writer") })).status).toBe(403)
    expect((await served.fetch("/metrics", { headers: as("admin") })).status).toBe(200)
    settings = settingsWith({ metrics: { public: true } })
    expect((await served.fetch("/metrics")).status).toBe(200)
    settings = settingsWith()
  })

  it("counts requests by route and status, and describes the process", async () => {
    await served.fetch("/v1/blobs", { headers: as("reader") })
    await served.fetch(`/v1/blobs/item/${"0".repeat(32)}`, { method: "DELETE" })
    await served.fetch("/nowhere")
    const answer = await served.fetch("/metrics", { headers: as("admin") })
    expect(answer.headers.get("content-type")).toContain("version=0.0.4")
    const text = await answer.text()
    const route = 'method="GET",route="/v1/blobs"'
    expect(text).toContain(`almanac_http_requests_total{${route},status="200"} 1`)
    expect(text).toContain('method="DELETE",route="/v1/blobs/item/:id",status="401"} 1')
    expect(text).toContain('method="any",route="none",status="404"} 1')
    expect(text).toContain(`almanac_http_request_duration_seconds_bucket{${route},le="+Inf"} 1`)
    expect(text).toMatch(/^process_resident_memory_bytes \d{7,}$/m)
    expect(text).toMatch(/^nodejs_eventloop_delay_p99_seconds [\d.e-]+$/m)
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [\d.e+-]+)$/)
    }
  })
})
