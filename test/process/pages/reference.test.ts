/** The API reference of a running server: its weight, its caching, and every section of it. */
import { expect, it } from "vitest"
import { minute_ms, pageServer } from "../../world/server/page-server.ts"
import { serious } from "../../world/web/axe.ts"
import { describeWithChromium } from "../../world/web/chromium.ts"
import { overflowOf } from "../../world/web/view.ts"

/** Maximum size of everything that a first visit transfers. Source: issue 32, point 4. */
const transferred_bytes_max = 400_000

describeWithChromium("the API reference of a running server", () => {
  const running = pageServer({})

  it("transfers at most 400 kB once, and nothing from another host", {
    timeout: 3 * minute_ms,
  }, async () => {
    const { url } = running.server()
    const { page, complaints } = await running.newPage()
    const hosts = new Set<string>()
    const network = await page.context().newCDPSession(page)
    await network.send("Network.enable")
    let bytes = 0
    network.on("Network.loadingFinished", ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    page.on("request", (request) => hosts.add(new URL(request.url()).origin))
    const caching = new Map<string, string | undefined>()
    page.on("response", (response) => {
      const { pathname } = new URL(response.url())
      caching.set(pathname, response.headers()["cache-control"])
    })
    await page.goto(`${url}/docs`, { waitUntil: "networkidle" })
    await page.getByRole("heading", { name: "Almanac API" }).waitFor()
    expect(bytes).toBeGreaterThan(20_000)
    expect(bytes).toBeLessThan(transferred_bytes_max)
    expect([...hosts]).toEqual([url])
    for (const [path, header] of caching) {
      const is_asset = path.startsWith("/assets/")
      const wanted = is_asset ? "public, max-age=31536000, immutable" : "no-cache"
      expect([path, header]).toEqual([path, wanted])
    }
    const first_bytes = bytes
    await page.reload({ waitUntil: "networkidle" })
    await page.getByRole("heading", { name: "Almanac API" }).waitFor()
    expect(bytes - first_bytes).toBeLessThan(first_bytes / 10)
    expect(complaints).toEqual([])
    await page.close()
  })

  it("shows every operation of the description, on a phone too", {
    timeout: 4 * minute_ms,
  }, async () => {
    const { url } = running.server()
    const { page, complaints } = await running.newPage()
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${url}/docs`)
    await page.getByRole("heading", { name: "Almanac API" }).waitFor()
    const document = await (await fetch(`${url}/openapi.json`)).json()
    const items: ReadonlyArray<object> = Object.values(document.paths)
    const count = items.flatMap((item) => Object.keys(item)).length
    const sections: string[] = await page
      .locator("#contents a.section")
      .evaluateAll((all) => all.flatMap((one) => one.getAttribute("href") ?? []))
    let found = 0
    for (const section of sections.filter((one) => one !== "#introduction")) {
      await page.evaluate((to) => {
        location.hash = to
      }, section)
      await page.locator(`h2[id="${section.slice(1)}"]`).waitFor()
      found += await page.locator("article").count()
      expect([section, await overflowOf(page)]).toEqual([section, 0])
    }
    expect(found).toBe(count)
    expect(complaints).toEqual([])
    await page.close()
  })

  it("describes the upload of a blob, with an example, for axe too", {
    timeout: 2 * minute_ms,
  }, async () => {
    const { page, complaints } = await running.newPage()
    await page.goto(`${running.server().url}/docs#blobs/put`)
    const article = page.locator("[id='blobs/put']")
    await article.waitFor()
    expect(await article.textContent()).toContain("/v1/blobs")
    expect(await article.locator("figure pre").first().textContent()).toContain("curl -X PUT")
    for (const link of ["/", "/console", "/openapi.json", "/asyncapi.json"]) {
      expect(await page.locator(`#header a[href="${link}"]`).count()).toBe(1)
    }
    expect(await serious(page)).toEqual([])
    expect(complaints).toEqual([])
    await page.close()
  })
})
