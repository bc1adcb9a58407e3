/** Errors as HTML for browsers, and in the envelope of the path for all other clients. */
import { createHash } from "node:crypto"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compress } from "#adapters/http/page-files.ts"
import { systemService } from "#gateway/system/service.ts"
import { type Served, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const scope = Effect.runSync(Scope.make())
let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  const system = await Effect.runPromise(
    Scope.provide(systemService({ services: [], compress }), scope),
  )
  const broken = { ...probe("carrier-search", "/api/search"), routes: Effect.die("no file") }
  const services = [probe("blob-storage", "/v1/blobs"), broken, system]
  served = await startHttp(services)
})
afterAll(async () => {
  await served.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" }

const get = async (path: string, init: RequestInit = {}) => {
  const response = await served.fetch(path, { headers: browser, ...init })
  return { response, text: await response.text() }
}

describe("an error for a browser", () => {
  it.each([
    ["/nowhere", 404, "Not found"],
    ["/v1/nowhere?a=1", 404, "Not found"],
    ["/carriers", 404, "Not found"],
    ["/v1/blobs/echo", 501, "Method not implemented"],
    ["/v1/blobs", 401, "Token required"],
    ["/api/search", 503, "Service unavailable"],
    ["/%zz", 400, "Bad request"],
    ["/docs", 404, "Not found"],
  ])("on %s is a page with the status %i: %s", async (path, status, title) => {
    const { response, text } = await get(path)
    expect([response.status, response.headers.get("content-type")]).toEqual([
      status,
      "text/html; charset=utf-8",
    ])
    expect(text).toContain(`<h1>${title}</h1>`)
    expect(text).toContain(`<code>GET ${path.split("?")[0]}</code>`)
    expect(text).toContain(`<code>${response.headers.get("x-request-id")}</code>`)
    for (const link of ["/", "/docs"]) expect(text).toContain(`href="${link}"`)
  })

  it("names the pages of this server and no others", async () => {
    const { text } = await get("/nowhere")
    expect(text).toContain('<a href="/carriers">Carriers</a>')
    expect(text).not.toContain('href="/plants"')
  })

  it("keeps the headers of the error, and is not stored", async () => {
    const { response } = await get("/carriers", { method: "POST" })
    expect(response.status).toBe(405)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      allow: "GET, HEAD",
      vary: "accept",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    })
  })

  it("escapes the path", async () => {
    const { text } = await get("/<img src=x onerror=alert(1)>\"'")
    expect(text).not.toContain("<img")
  })

  it("has a policy that allows its style and its script only", async () => {
    const { response, text } = await get("/nowhere")
    const policy = response.headers.get("content-security-policy")
    for (const tag of ["style", "script"]) {
      const [, content = ""] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text) ?? []
      const digest = createHash("sha256").update(content).digest("base64")
      expect(policy).toContain(`${tag}-src 'sha256-${digest}'`)
    }
    expect(policy).toContain("default-src 'none'")
  })

  it("has no body for HEAD", async () => {
    const { response, text } = await get("/nowhere", { method: "HEAD" })
    expect([response.status, text]).toEqual([404, ""])
  })
})

describe("an error for another client", () => {
  it.each([
    "*/*",
    "application/json",
    "application/json, text/html",
    "text/html;q=0.5, application/json",
  ])("that accepts %s keeps its envelope", async (accept) => {
    const { response, text } = await get("/nowhere", { headers: { accept } })
    expect([response.status, response.headers.get("content-type")]).toEqual([
      404,
      "application/json",
    ])
    expect(JSON.parse(text).code).toBe("svc.not_found")
  })
})
