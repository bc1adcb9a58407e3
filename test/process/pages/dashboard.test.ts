/**
 * The dashboard as a user sees it: the real server, the commands next to it, and a real browser.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { buildPage, hasPage } from "../../../launcher/page.mjs"
import { minute_ms, watchedPage } from "../../world/server/page-server.ts"
import { cleanUp, newFolder, runVerb, startServer, until } from "../../world/server/server.ts"
import { describeWithChromium, launch } from "../../world/web/chromium.ts"

/** A lost file is rebuilt within seconds. */
const mended_ms_max = 20_000

const environment = { ALMANAC_SERVICES: '["capital-pressure"]' }

describeWithChromium("the dashboard of a running server", () => {
  const data_dir = newFolder()
  let server: Awaited<ReturnType<typeof startServer>>
  let browser: Awaited<ReturnType<typeof launch>>

  const answer = async (path: string) => {
    const response = await fetch(new URL(path, server.url))
    return { status: response.status, text: await response.text() }
  }
  /** The page's headline. */
  const headline = async () => {
    const { page, complaints } = await watchedPage(browser.browser)
    await page.goto(server.url)
    await page.locator("#main > section").first().waitFor()
    const text = (await page.locator("#main").textContent()) ?? ""
    await page.close()
    expect(complaints).toEqual([])
    return text
  }

  beforeAll(async () => {
    const reason = hasPage() ? undefined : buildPage()
    if (reason) throw new Error(reason)
    server = await startServer(data_dir, environment)
    browser = await launch()
  }, minute_ms)

  afterAll(async () => {
    await browser?.close()
    await cleanUp()
  }, minute_ms)

  it("shows what to run while there is nothing to show", { timeout: minute_ms }, async () => {
    expect(await headline()).toContain("npm run almanac -- ingest --demo")
    expect(JSON.parse((await answer("/api/dashboard")).text).composite).toBe(null)
  })

  it("marks generated data, next to ingested data", { timeout: 3 * minute_ms }, async () => {
    const { code, stdout } = await runVerb(data_dir, ["ingest", "--demo"], environment)
    expect(code).toBe(0)
    expect(stdout).toContain("This is generated data")
    const dashboard = JSON.parse((await answer("/api/dashboard")).text)
    expect(dashboard.demo).toBe(true)
    expect(dashboard.composite.metrics_total).toBeGreaterThan(10)
    expect(dashboard.composite_history).toHaveLength(252)
    const text = await headline()
    expect(text).toContain("Pressure")
    expect(text.toLowerCase()).toContain("demo")
  })

  it("shows the same after it was killed", { timeout: 2 * minute_ms }, async () => {
    const before = await answer("/api/dashboard")
    await server.killAll()
    server = await startServer(data_dir, environment)
    expect(await answer("/api/dashboard")).toEqual(before)
  })

  it("shows the same after its file was lost", { timeout: 2 * minute_ms }, async () => {
    const before = await answer("/api/dashboard")
    for (const suffix of ["", "-wal", "-shm"]) {
      rmSync(join(data_dir, `capital-pressure.sqlite${suffix}`), { force: true })
    }
    expect((await answer("/api/dashboard")).status).toBe(500)
    expect((await answer("/health")).status).toBe(200)
    await until("the file to be there again", mended_ms_max, async () => {
      const { status, text } = await answer("/api/dashboard")
      return status === 200 && text === before.text
    })
  })
})
