/** The dashboard's page over HTTP: which files there are, how they are kept, what they may load. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { Effect, Exit, Scope } from "effect"
import { Client } from "undici"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pageFiles } from "#adapters/page-files.ts"
import type { Mounted } from "#gateway/routes.ts"
import { systemService } from "#gateway/system/service.ts"
import { probe } from "../gateway/probe.ts"
import { type Served, startHttp } from "../http.ts"

const index = `<!doctype html><title>Dashboard</title>${"<p>x</p>".repeat(100)}`
const script = `console.log(${JSON.stringify("x".repeat(2000))})`
const files: Readonly<Record<string, string>> = {
  "index.html": index,
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

/** What documents and the plain page need of a service. */
const mounted = {
  name: "capital-pressure",
  api: probe("capital-pressure", "/api/probe").api as unknown as Mounted["api"], // as mount has it
  app: undefined,
  waitFor: () => Effect.void,
  ready: Effect.succeed(undefined),
} satisfies Mounted

const scope = Effect.runSync(Scope.make())
const start = async (page: ReturnType<typeof pageFiles>, services: ReadonlyArray<Mounted>) => {
  const parts = { services, metrics: Effect.succeed(""), page }
  return startHttp([await Effect.runPromise(Scope.provide(systemService(parts), scope))])
}
let built: Served & { readonly stop: () => Promise<void> }
let unbuilt: typeof built
let elsewhere: typeof built
let client: Client
beforeAll(async () => {
  built = await start(pageFiles(folder), [mounted])
  client = new Client(built.url)
  unbuilt = await start(pageFiles(join(folder, "nowhere")), [mounted])
  elsewhere = await start(undefined, [{ ...mounted, name: "blob-storage" }])
})
afterAll(async () => {
  await client.close()
  await Promise.all([built.stop(), unbuilt.stop(), elsewhere.stop()])
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" }

/** As it goes over the wire; the path is sent as it stands. */
const get = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await client.request({ path, method: "GET", headers })
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  return { status: answer.statusCode, headers: answer.headers, bytes }
}

describe("/", () => {
  it("is the page for browsers, under a strict policy", async () => {
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

  it("without a built page says how it is built, where the dashboard is served", async () => {
    const plain = await unbuilt.fetch("/", { headers: browser })
    expect([plain.status, plain.headers.get("vary")]).toEqual([200, "accept"])
    expect(await plain.text()).toContain("<code>npm start</code>")
    expect((await unbuilt.fetch("/assets/icon.svg")).status).toBe(404)
    const other = await (await elsewhere.fetch("/", { headers: browser })).text()
    expect(other).toContain("blob-storage")
    expect(other).not.toContain("npm start")
  })
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
    ...["/assets/none.js", "/assets/notes.exe", "/assets/index.html", "/assets/deeper/file.js"],
    ...["/assets/../secret.html", "/assets/..%2Fsecret.html", "/assets/%2e%2e%2fsecret.html"],
    ...["/assets/..%5Csecret.html", "/assets/....//secret.html", "/assets/deeper%2Ffile.js"],
    ...["/assets/%2Fetc%2Fpasswd", "/assets/__proto__", "/assets/dashboard-AbC.css%00.js"],
  ])("%s is 404", async (path) => {
    const { status, bytes } = await get(path)
    expect([status, JSON.parse(bytes.toString()).code]).toEqual([404, "svc.not_found"])
  })

  it("with a malformed escape is 400", async () => {
    expect((await get("/assets/%zz")).status).toBe(400)
  })
})
