/** The drawer: opening, deep links, closing, and its details of a metric. */
import { describe, expect, it } from "vitest"
import type { World } from "./look.ts"
import { leave, look, overflowOf, picture } from "./view.ts"

export const describeDrawer = (world: () => World) =>
  describe("the drawer", () => {
    it("opens from a tile, keeps the focus, and gives it back on Esc", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      const tile = page.locator('.tile a[href="#metric=hy_spread"]')
      await tile.focus()
      await page.keyboard.press("Enter")
      const dialog = page.getByRole("dialog", { name: "High yield spread" })
      await dialog.locator(".facts").waitFor()
      const is_inside = () =>
        page.evaluate(() => document.activeElement?.closest("dialog") !== null)
      for (let times = 0; times < 12; times++) {
        const is_of_page = await page.evaluate(() => document.activeElement !== document.body)
        if (is_of_page) expect(await is_inside()).toBe(true)
        await page.keyboard.press("Tab")
      }
      await picture(page, "desktop-drawer", false)
      await page.keyboard.press("Escape")
      await dialog.waitFor({ state: "hidden" })
      // The browser reports a closed dialog to the page only after hiding it.
      await expect.poll(() => new URL(page.url()).hash).toBe("")
      await expect.poll(() => tile.evaluate((one) => one === document.activeElement)).toBe(true)
      await leave(view)
    })

    it("shows all of the metric, with a chart of its values and one of its z", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=hy_spread", size: "phone" })
      const drawer = view.page.locator(".drawer")
      await drawer.locator(".facts").waitFor()
      const detail = JSON.parse(served.bodies.get("/api/metrics/hy_spread/detail") ?? "{}")
      const text = (await drawer.locator(".drawer-body").textContent()) ?? ""
      for (const wanted of [
        detail.reading.value,
        detail.description,
        detail.source,
        detail.source_series,
        "365 days (1 year)",
        "Publication lag1 day",
        `Observations${detail.obs_count.toLocaleString("en-US")}`,
        "bearish: more pressure",
        "yes, one vote",
      ]) {
        expect(text).toContain(wanted)
      }
      const reason = detail.reading.vote.reason.replaceAll(/-(?=\d)/g, "\u2212")
      expect(text).toContain(reason)
      expect(await drawer.locator("canvas").count()).toBe(2)
      expect(await drawer.getByText("Raw values").count()).toBe(0)
      expect(await overflowOf(view.page)).toBe(0)
      const summary = drawer.locator("figcaption").nth(1)
      expect(await summary.textContent()).toMatch(/^The z-score went from .+ to .+ on 19 Nov 2026;/)
      await picture(view.page, "phone-drawer", false)
      await leave(view)
    })

    it("draws raw values too where the indicator is a change, over a chosen span", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=bank_credit" })
      const drawer = view.page.locator(".drawer")
      const readout = drawer.locator(".readout").first()
      const { points } = JSON.parse(served.bodies.get("/api/metrics/bank_credit/history") ?? "{}")
      await drawer.getByLabel("Raw values").check()
      expect(await readout.textContent()).toContain("Raw value")
      const plane = drawer.getByRole("slider").first()
      const length = async () => Number(await plane.getAttribute("aria-valuemax")) + 1
      expect(await length()).toBeLessThan(170)
      await drawer.getByLabel("All").check()
      expect(await length()).toBe(points.length)
      await drawer.getByLabel("Year on year").check()
      expect(await readout.textContent()).toContain("Change over a year")
      await leave(view)
    })

    it("is opened by a link from elsewhere, and leaves the focus at the tile", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=skew" })
      const { page } = view
      await page.locator(".drawer .facts").waitFor()
      expect(await page.locator(".drawer-body").textContent()).toContain("no, a gauge")
      await page.getByRole("button", { name: "Close" }).click()
      const focused = () => page.evaluate(() => document.activeElement?.getAttribute("href"))
      await expect.poll(focused).toBe("#metric=skew")
      await page.goBack()
      await page.getByRole("dialog").waitFor()
      await page.goForward()
      await page.getByRole("dialog").waitFor({ state: "hidden" })
      await leave(view)
    })

    it("says why there is no reading, and that an unknown metric is none", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=put_call" })
      const body = view.page.locator(".drawer-body")
      await body.locator(".facts").waitFor()
      expect(await body.textContent()).toContain("No reading: this metric has no free source.")
      expect(await body.locator("canvas").count()).toBe(0)
      await view.page.evaluate(() => {
        location.hash = "#metric=lending_standards"
      })
      const command = body.locator(".command code")
      const wanted = "npm run almanac -- ingest --metric lending_standards"
      await expect.poll(() => command.textContent()).toBe(wanted)
      await view.page.evaluate(() => {
        location.hash = "#metric=nonsense"
      })
      await body.getByText("Metric nonsense does not exist.").waitFor()
      await leave(view)
    })

    it("is closed by a click outside it", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=nfci" })
      await view.page.locator(".drawer .facts").waitFor()
      await view.page.mouse.click(40, 400)
      await view.page.getByRole("dialog").waitFor({ state: "hidden" })
      await leave(view)
    })
  })
