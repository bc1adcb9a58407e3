/** The pages over HTTP: which exist, how they are cached, and what they may load. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { Effect, Exit, Scope } from "effect"
import { Client } from "undici"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compress, pageFiles } from "#adapters/http/page-files.ts"
import type { Mounted } from "#gateway/routes.ts"
import { systemService } from "#gateway/system/service.ts"
import { type Served, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const way = (paths: string) => `<header id="header" data-pages="${paths}"></header>`
const pageOf = (title: string, paths = "/ /carriers /plants /docs") =>
  `<!doctype html><title>${title}</title>${way(paths)}${"<p>x</p>".repeat(100)}`
/** The index page when the dashboard and carrier search are enabled. */
const index = pageOf("Dashboard", "/ /carriers /docs")
const script = `console.log(${JSON.stringify("x".repeat(2000))})`
const files: Readonly<Record<string, string>> = {
  "index.html": pageOf("Dashboard"),
  "carriers.html": pageOf("Carriers"),
  "plants.html": pageOf("Plants"),
  "operators.html": pageOf("Console"),
  "reference.html": pageOf("API reference"),
  "secret.html": "outside",
  "assets/dashboard-AbC_1-2.js": script,
  "assets/dashboard-AbC.css": "p { color: red }",
  "assets/icon.svg": "<svg/>",
  "assets/notes.exe": "no part of a page",
  "assets/deeper/file.js": "no part of a page",
}

const folder = mkdtempSync(join(tmpdir(), "almanac-page-"))
mkdirSync(join(folder, "assets/deeper"), { recursive: true })
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)

/** The part of a service that the documents and the plain page use. */
const mounted = (name: string) =>
  ({
    name,
    api: probe(name, `/api/${name}`).api as unknown as Mounted["api"], // as mount types it
    app: undefined,
    waitFor: () => Effect.void,
    ready: Effect.succeed(undefined),
  }) satisfies Mounted

const scope = Effect.runSync(Scope.make())
const start = async (names: ReadonlyArray<string>, built_in = folder) => {
  const services = names.map(mounted)
  const parts = { services, pages: pageFiles(names, built_in), compress }
  return startHttp([await Effect.runPromise(Scope.provide(systemService(parts), scope))])
}
let built: Served & { readonly stop: () => Promise<void> }
let unbuilt: typeof built
let elsewhere: typeof built
let alone: typeof built
let operated: typeof built
let client: Client
beforeAll(async () => {
  built = await start(["capital-pressure", "carrier-search"])
  client = new Client(built.url)
  unbuilt = await start(["capital-pressure", "plant-disease"], join(folder, "nowhere"))
  elsewhere = await start(["blob-storage"])
  alone = await start(["blob-storage", "plant-disease"])
  operated = await start(["blob-storage", "operations"])
})
afterAll(async () => {
  await client.close()
  await Promise.all([built.stop(), unbuilt.stop(), elsewhere.stop(), alone.stop()])
  await operated.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" }

/** Returns the raw response; the path is sent unchanged. */
const get = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await client.request({ path, method: "GET", headers })
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  return { status: answer.statusCode, headers: answer.headers, bytes }
}

describe("/", () => {
  it("is the page for browsers, with a strict policy", async () => {
    const { status, headers, bytes } = await get("/", browser)
    expect([status, bytes.toString()]).toEqual([200, index])
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      vary: "accept, accept-encoding",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    })
    const policy = String(headers["content-security-policy"])
    expect(policy).toMatch(/^default-src 'self'; /)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/)
  })

  it("is the version document for programs still", async () => {
    for (const accept of ["*/*", "application/json"]) {
      const answer = await built.fetch("/", { headers: { accept } })
      expect([answer.status, answer.headers.get("vary")]).toEqual([300, "accept"])
      expect(await answer.json()).toHaveProperty("versions")
    }
  })

  it("is 304 for who has it, and gzipped for who takes that", async () => {
    const { etag } = (await get("/", browser)).headers
    expect((await get("/", { ...browser, "if-none-match": String(etag) })).status).toBe(304)
    const zipped = await get("/", { ...browser, "accept-encoding": "gzip" })
    expect(zipped.headers["content-encoding"]).toBe("gzip")
    expect(gunzipSync(zipped.bytes).toString()).toBe(index)
  })

  it("without a built page explains how to build it, where the dashboard is served", async () => {
    const plain = await unbuilt.fetch("/", { headers: browser })
    expect([plain.status, plain.headers.get("vary")]).toEqual([200, "accept"])
    expect(await plain.text()).toContain("<code>npm start</code>")
    expect((await unbuilt.fetch("/assets/icon.svg")).status).toBe(404)
    const other = await (await elsewhere.fetch("/", { headers: browser })).text()
    expect(other).toContain("blob-storage")
    expect(other).not.toContain("npm start")
  })

  it("without the dashboard leads to the pages that there are", async () => {
    const text = await (await alone.fetch("/", { headers: browser })).text()
    expect(text).toContain('<li><a href="/plants">plant-disease</a></li>')
    expect(text).toContain("<li>blob-storage</li>")
    expect(text).not.toContain("npm start")
  })
})

describe("/carriers and /plants", () => {
  it("are the page of their own service, under the same policy as the dashboard's", async () => {
    const dashboard = (await get("/", browser)).headers
    const { status, headers, bytes } = await get("/carriers", browser)
    expect([status, bytes.toString()]).toEqual([200, pageOf("Carriers", "/ /carriers /docs")])
    for (const name of [
      "content-type",
      "content-security-policy",
      "referrer-policy",
      "x-content-type-options",
      "cache-control",
      "vary",
    ]) {
      expect([name, headers[name]]).toEqual([name, dashboard[name]])
    }
    expect(headers.etag).not.toBe(dashboard.etag)
    const known = { ...browser, "if-none-match": String(headers.etag) }
    expect((await get("/carriers", known)).status).toBe(304)
    const plants = await alone.fetch("/plants", { headers: browser })
    expect([plants.status, await plants.text()]).toEqual([200, pageOf("Plants", "/plants /docs")])
  })

  it.each([
    ["text/html", 200],
    ["*/*", 200],
    ["text/*;q=0.5, application/json", 200],
    ["application/json", 404],
    ["text/html;q=0, */*", 404],
  ])("for Accept: %s answer %i: there is no other form", async (accept, wanted) => {
    const { status, bytes } = await get("/carriers", { accept })
    expect(status).toBe(wanted)
    if (wanted === 404) expect(JSON.parse(bytes.toString()).code).toBe("svc.not_found")
  })

  it("answer HEAD, a trailing slash, and no other method", async () => {
    const head = await client.request({ path: "/carriers", method: "HEAD", headers: browser })
    expect([head.statusCode, await head.body.text()]).toEqual([200, ""])
    expect((await get("/carriers/", browser)).status).toBe(200)
    const post = await client.request({ path: "/carriers", method: "POST", headers: browser })
    expect([post.statusCode, post.headers.allow]).toEqual([405, "GET, HEAD"])
    await post.body.dump()
  })

  it.each([
    ["/plants", () => built],
    ["/carriers", () => alone],
    ["/carriers", () => elsewhere],
  ])("%s is 404 where its service is disabled, and names the service", async (path, where) => {
    const page = await where().fetch(path, { headers: browser })
    expect([page.status, page.headers.get("content-type")]).toEqual([
      404,
      "text/html; charset=utf-8",
    ])
    const service = path === "/plants" ? "plant-disease" : "carrier-search"
    expect(await page.text()).toContain(`needs the service ${service}, which is disabled`)
    const answer = await where().fetch(path)
    expect([answer.status, (await answer.json()).code]).toEqual([404, "svc.not_found"])
  })

  it("that are not built explain how to build them", async () => {
    const page = await unbuilt.fetch("/plants", { headers: browser })
    expect([page.status, await page.text()]).toEqual([
      404,
      expect.stringContaining("npm start builds it"),
    ])
  })
})

describe("/console", () => {
  it("is there where operators' paths are, under the same policy, for anybody", async () => {
    const page = await operated.fetch("/console", { headers: browser })
    expect([page.status, await page.text()]).toEqual([200, pageOf("Console", "/console /docs")])
    const policy = (await get("/", browser)).headers["content-security-policy"]
    expect(page.headers.get("content-security-policy")).toBe(policy)
    const home = await (await operated.fetch("/", { headers: browser })).text()
    expect(home).toContain('<a href="/console">')
    expect((await get("/console", browser)).status).toBe(404)
  })
})

describe("/docs", () => {
  it("is the API reference on every gateway, under the policy of all pages", async () => {
    const { headers } = await get("/", browser)
    const page = await elsewhere.fetch("/docs", { headers: browser })
    expect([page.status, await page.text()]).toEqual([200, pageOf("API reference", "/docs")])
    for (const name of ["content-security-policy", "cache-control", "vary"]) {
      expect([name, page.headers.get(name)]).toEqual([name, headers[name]])
    }
  })
})

describe("/openapi.json and /asyncapi.json", () => {
  it.each(["/openapi.json", "/v1/openapi.json", "/asyncapi.json"])(
    "%s is compressed, and 304 for a client that has it",
    async (path) => {
      const { headers, bytes } = await get(path, { "accept-encoding": "gzip" })
      expect(headers).toMatchObject({
        "content-type": "application/json",
        "content-encoding": "gzip",
        "cache-control": "no-cache",
        vary: "accept-encoding",
      })
      expect(JSON.parse(gunzipSync(bytes).toString()).info.title).toContain("Almanac")
      const known = { "accept-encoding": "gzip", "if-none-match": String(headers.etag) }
      expect((await get(path, known)).status).toBe(304)
      expect(JSON.parse((await get(path)).bytes.toString()).info.title).toContain("Almanac")
    },
  )
})

describe("/assets/", () => {
  it.each([
    ["dashboard-AbC_1-2.js", "text/javascript; charset=utf-8"],
    ["dashboard-AbC.css", "text/css; charset=utf-8"],
    ["icon.svg", "image/svg+xml"],
  ])("%s is %s, and never asked for again", async (name, type) => {
    const { status, headers, bytes } = await get(`/assets/${name}`)
    expect([status, bytes.toString()]).toEqual([200, files[`assets/${name}`]])
    expect(headers).toMatchObject({
      "content-type": type,
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'",
      vary: "accept-encoding",
    })
    const known = { "if-none-match": String(headers.etag) }
    expect((await get(`/assets/${name}`, known)).status).toBe(304)
  })

  it("is gzipped where that is shorter", async () => {
    const accepts = { "accept-encoding": "gzip, br" }
    const { headers, bytes } = await get("/assets/dashboard-AbC_1-2.js", accepts)
    expect(headers["content-encoding"]).toBe("gzip")
    expect(gunzipSync(bytes).toString()).toBe(script)
    const short = await get("/assets/icon.svg", accepts)
    expect(short.headers["content-encoding"]).toBe(undefined)
  })

  it.each([
    "/assets/none.js",
    "/assets/notes.exe",
    "/assets/index.html",
    "/assets/deeper/file.js",
    "/assets/../secret.html",
    "/assets/..%2Fsecret.html",
    "/assets/%2e%2e%2fsecret.html",
    "/assets/..%5Csecret.html",
    "/assets/....//secret.html",
    "/assets/deeper%2Ffile.js",
    "/assets/%2Fetc%2Fpasswd",
    "/assets/__proto__",
    "/assets/dashboard-AbC.css%00.js",
  ])("%s is 404", async (path) => {
    const { status, bytes } = await get(path)
    expect([status, JSON.parse(bytes.toString()).code]).toEqual([404, "svc.not_found"])
  })

  it("with a malformed escape is 400", async () => {
    expect((await get("/assets/%zz")).status).toBe(400)
  })
})
