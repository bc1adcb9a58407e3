/** The API reference in a real Chromium, with the served files and a small API description. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { serious } from "../world/web/axe.ts"
import { buildIfNeeded, filesOf, sizeOf } from "../world/web/built.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"
import { openapi } from "../world/web/openapi.ts"
import { listen } from "../world/web/served.ts"
import { leave, look, overflowOf, picture, type Size } from "../world/web/view.ts"

/** The page without the API description; compressed. */
const page_bytes_max = 30_000

buildIfNeeded()

it("weighs less than 30 kB compressed, all its files together", () => {
  const sizes = filesOf("reference.html").map(sizeOf)
  expect(sizes.length).toBeGreaterThan(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(page_bytes_max)
})

describeWithChromium("the API reference", () => {
  let status = 200
  let served: Awaited<ReturnType<typeof listen>>
  let browser: Browser
  let close = () => Promise.resolve()

  beforeAll(async () => {
    served = await listen((_request, response) => {
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(openapi))
    })
    const launched = await launch()
    browser = launched.browser
    close = launched.close
  })
  beforeEach(() => {
    status = 200
  })
  afterAll(async () => {
    await close()
    await served.close()
  })

  const open = (hash: string, options: { size?: Size; colorScheme?: "light" | "dark" } = {}) =>
    look(browser, served, { path: "/docs", hash, wait: "#main h2", ...options })

  it("begins with the introduction, as the description has it", async () => {
    const view = await open("")
    const { page } = view
    const main = page.locator("#main")
    expect(await main.locator("h2").textContent()).toBe("Almanac API")
    expect(await main.locator("h3").allTextContents()).toEqual([
      "Authentication",
      "Errors",
      "Credentials",
    ])
    expect(await main.locator("table td").allTextContents()).toEqual([
      "404",
      "The resource does not exist.",
    ])
    expect(await main.locator("li li").textContent()).toBe("A nested item")
    expect(await main.locator("pre").textContent()).toBe("echo <b>not bold</b>")
    expect(await main.textContent()).toContain("Header X-Auth-Token")
    await page.getByRole("link", { name: "Errors" }).click()
    expect(new URL(page.url()).hash).toBe("#introduction/errors")
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("introduction/errors")
    await leave(view)
  })

  it("links the other pages and both documents", async () => {
    const view = await open("")
    const header = view.page.locator("#header")
    const links = await header
      .locator("a")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")))
    const pages = ["/", "/carriers", "/plants", "/console", "/docs"]
    expect(links).toEqual([...pages, "/openapi.json", "/asyncapi.json"])
    await leave(view)
  })

  it("shows an operation: access, parameters, body, responses, errors, examples", async () => {
    const view = await open("#folders/create")
    const { page } = view
    expect(await page.title()).toBe("Create a folder \u00b7 API \u00b7 Almanac")
    const article = page.locator("article").filter({ hasText: "Creates a folder." })
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("folders/create")
    expect(await article.locator("ol li").allTextContents()).toEqual(["Choose a name.", "Send it."])
    expect(await article.locator(".access").textContent()).toContain("policy rule")
    const name = article.locator(".property").first()
    for (const text of ["string", "1 to 64 characters", "^[a-z]+$", "required", "Unique in"]) {
      expect(await name.textContent()).toContain(text)
    }
    const [depth, kind, note] = await article
      .locator(".property")
      .allTextContents()
      .then((all) => all.slice(1))
    expect(depth).toBe("depthinteger0 to 9default 3")
    expect(kind).toBe("kindstringOne of: plain, mirror")
    expect(note).toBe("notestring or null")
    const [request, response] = await article.locator("figure pre").allTextContents()
    expect(request).toContain(`curl -X POST '${served.origin}/v1/folders'`)
    expect(request).toContain('"name": "photos"')
    expect(JSON.parse(response ?? "")).toEqual({ name: "photos", depth: 2, note: null })
    const error = article.locator("details.bad")
    expect(await error.locator("summary").textContent()).toBe("409 A folder with this name exists.")
    await leave(view)
  })

  it("opens the properties of a schema that contains itself, level by level", async () => {
    const view = await open("#folders/create")
    const folders = view.page
      .locator("article", { hasText: "Creates a folder." })
      .locator(".part .property", { hasText: "folders" })
    await folders.first().locator("summary").first().click()
    await folders.first().locator(".inner summary").first().click()
    // The page adds the properties after the click, when it receives the event `toggle`.
    const innermost = folders.first().locator(".inner .inner .property")
    await expect.poll(() => innermost.count()).toBe(6)
    await leave(view)
  })

  it("fills the path of a request, and merges the limits of a parameter", async () => {
    const view = await open("#folders")
    const { page } = view
    const requests = await page.locator("figure pre").allTextContents()
    expect(requests.join()).toContain("/v1/folders/0191d3a0-0000-7000-8000-000000000001'")
    const limit = page.locator(".property", { hasText: "limit" }).first()
    expect(await limit.textContent()).toBe(
      "limitqueryinteger1 to 1000default 100Maximum number of folders.",
    )
    await leave(view)
  })

  it("filters operations by words of their path, title and method", async () => {
    const view = await open("")
    const { page } = view
    const field = page.getByRole("searchbox", { name: "Filter operations" })
    await field.fill("folder delete")
    const found = page.locator("#contents ul ul a")
    expect(await found.allTextContents()).toEqual(["DELETEDelete a folder"])
    await found.click()
    expect(new URL(page.url()).hash).toBe("#folders/delete")
    await page.getByRole("heading", { name: "Delete a folder" }).waitFor()
    await field.fill("nothing like it")
    await page.getByText("No operation matches.").waitFor()
    await leave(view)
  })

  it("reports a failure, and retries", async () => {
    status = 503
    const view = await look(browser, served, { path: "/docs", wait: "[role=alert]" })
    expect(await view.page.locator("[role=alert]").textContent()).toContain("status 503")
    status = 200
    await view.page.getByRole("button", { name: "Retry" }).click()
    await view.page.getByRole("heading", { name: "Almanac API" }).waitFor()
    await leave(view)
  })

  it("fits a phone, whose contents are closed until needed", async () => {
    const view = await open("#folders", { size: "phone" })
    const { page } = view
    expect(await overflowOf(page)).toBe(0)
    expect(await page.locator("#contents ul").first().isVisible()).toBe(false)
    await page.getByText("Contents", { exact: true }).click()
    await page.getByRole("link", { name: "Health checks" }).click()
    await page.getByRole("heading", { name: "Check that the process runs" }).waitFor()
    await picture(page, "reference-phone")
    await leave(view)
  })

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing that axe finds serious when ${colorScheme}`, async () => {
      const view = await open("", { colorScheme })
      const { page } = view
      expect(await serious(page)).toEqual([])
      await page.evaluate(() => {
        location.hash = "#folders"
      })
      await page.locator("article").first().waitFor()
      for (const one of await page
        .locator("article .part > * > .property > details > summary")
        .all()) {
        await one.click()
      }
      for (const one of await page.locator(".response > summary").all()) await one.click()
      expect(await serious(page)).toEqual([])
      await picture(page, `reference-desktop-${colorScheme}`)
      const levels = await page.evaluate(() =>
        [...document.querySelectorAll("h1, h2, h3, h4, h5")].map((one) => Number(one.tagName[1])),
      )
      expect(levels.filter((level, index) => level - (levels[index - 1] ?? 0) > 1)).toEqual([])
      await leave(view)
    })
  }
})
