/** The page over time and during faults: no data yet, updates, no updates, errors. */
import { describe, expect, it } from "vitest"
import { synthetic_last_day } from "../capital-pressure/synthetic-store.ts"
import { bodiesOf, stores } from "./canned.ts"
import type { World } from "./look.ts"
import { leave, look, overflowOf, picture, sizes, type View } from "./view.ts"

const minute_ms = 60_000

/** Advances the page's clock, and waits for its next request to the server. */
const pass = async ({ page }: View, ms: number) => {
  const answered = page.waitForResponse((response) => response.url().endsWith("/api/scheduler"))
  await page.clock.runFor(ms)
  await answered
}

/** Runs in the page: counts changes under the first matching element, in `window.changes`. */
const countChanges = (selector: string) => {
  const place = document.querySelector(selector)
  const counted = { changes: 0 }
  const observer = new MutationObserver((list) => {
    counted.changes += list.length
  })
  if (place) observer.observe(place, { subtree: true, childList: true, attributes: true })
  Object.defineProperty(window, "changes", { get: () => counted.changes })
}

export const describeStates = (world: () => World) =>
  describe("the page in time", () => {
    it("before the first ingest says what to run, with buttons that copy it", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.empty, undefined, false)
      const permissions = ["clipboard-read", "clipboard-write"]
      const view = await look(browser, served, { permissions })
      const { page } = view
      expect(await page.locator("h2").first().textContent()).toBe("No data yet")
      expect(await page.locator(".command code").allTextContents()).toEqual([
        "npm run almanac -- ingest --demo",
        "npm run almanac -- ingest",
        "npm run almanac -- backfill-composite",
      ])
      await page.getByRole("button", { name: "Copy: npm run almanac -- ingest --demo" }).click()
      await page.getByText("Copied").first().waitFor()
      const copied = await page.evaluate(() => navigator.clipboard.readText())
      expect(copied).toBe("npm run almanac -- ingest --demo")
      expect(await page.locator("section.scheduler .note").textContent()).toContain(
        "The scheduler is off",
      )
      expect(await page.locator(".sources tbody tr").count()).toBe(24)
      expect(await page.locator(".watchlist").count()).toBe(0)
      await picture(page, "desktop-empty")
      served.bodies = bodiesOf(stores.demo)
      await pass(view, minute_ms)
      await page.locator(".composite").waitFor()
      expect(await page.locator(".empty").count()).toBe(0)
      await leave(view)
    })

    it("before the first backfill says how the history is made", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.before_backfill)
      const view = await look(browser, served)
      const hint = view.page.locator(".history .command code")
      expect(await hint.textContent()).toBe("npm run almanac -- backfill-composite")
      served.bodies = bodiesOf(stores.demo)
      await pass(view, minute_ms)
      await view.page.locator("#history-chart canvas").waitFor()
      await leave(view)
    })

    it("says that all is too old for a composite, and not that there is too little", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.whole, synthetic_last_day + 400)
      const view = await look(browser, served)
      const none = view.page.locator(".composite.none")
      expect(await none.textContent()).toMatch(/All values are too old.*is from \d+ Nov 2026/)
      await leave(view)
    })

    it("shows the history below it where there is no composite today", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.whole, synthetic_last_day + 400)
      for (const size of ["phone", "desktop"] as const) {
        const view = await look(browser, served, { size })
        const { page } = view
        const none = page.locator(".composite.none")
        await none.locator("#history-chart canvas").waitFor()
        expect(await none.locator("h3").textContent()).toBe("252 business days to 20 Nov 2026")
        const notice = await none.locator(".headline").boundingBox()
        const chart = await none.locator("#history-chart canvas").boundingBox()
        expect(notice?.y).toBeLessThan(chart?.y ?? 0)
        expect((chart?.x ?? 0) + (chart?.width ?? 0)).toBeLessThanOrEqual(sizes[size].width)
        expect(await overflowOf(page)).toBe(0)
        await none.getByLabel("Tier 3").check()
        expect(await none.locator(".readout").textContent()).toContain("Tier 3")
        await none.locator("summary").click()
        const rows = () => none.locator(".values tbody tr").count()
        await expect.poll(rows).toBe(252)
        await picture(page, `${size}-no-composite`)
        await leave(view)
      }
    })

    it("keeps the chart and its lines as the composite goes and comes again", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      await page.getByLabel("Tier 2").check()
      await page.locator("summary").click()
      for (const [days, kind] of [
        [400, ".composite.none"],
        [0, ".composite:not(.none)"],
      ] as const) {
        served.bodies = bodiesOf(stores.whole, synthetic_last_day + days)
        await pass(view, minute_ms)
        const history = page.locator(`${kind} .history`)
        await history.locator("canvas").waitFor()
        expect(await history.getByLabel("Tier 2").isChecked()).toBe(true)
        expect(await history.locator(".readout").textContent()).toContain("Tier 2")
        expect(await history.locator("details[open]").count()).toBe(1)
      }
      await leave(view)
    })

    it("shows no history, nor how one is made, before there can be a composite", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.short)
      const view = await look(browser, served)
      const none = view.page.locator(".composite.none")
      expect(await none.textContent()).toMatch(/Not enough history.*one to four years of a metric/)
      expect(await none.locator(".history").count()).toBe(0)
      await leave(view)
    })

    it("says that some is too old and some too short where the composite ended so", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.ended)
      const view = await look(browser, served)
      const none = view.page.locator(".composite.none")
      expect(await none.textContent()).toMatch(/No composite today\..*too old.*too short/)
      await none.locator("#history-chart canvas").waitFor()
      await leave(view)
    })

    it("polls each minute, receives 304, and changes nothing", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      await page.locator("summary").click()
      await page.locator('.tile a[href="#metric=nfci"]').focus()
      await page.evaluate(countChanges, ".tiers")
      served.answered.length = 0
      await pass(view, minute_ms)
      expect(served.answered.toSorted()).toEqual([
        "304 /api/dashboard",
        "304 /api/scheduler",
        "304 /api/sources",
        "304 /api/watchlist",
      ])
      await page.getByText("checked 22:31").waitFor()
      expect(await page.evaluate(() => Reflect.get(window, "changes"))).toBe(0)
      expect(await page.locator("details[open]").count()).toBe(1)
      expect(await page.locator("#announcement").textContent()).toBe("")
      const focused = await page.evaluate(() => document.activeElement?.getAttribute("href"))
      expect(focused).toBe("#metric=nfci")
      await leave(view)
    })

    it("shows news in place and says them, the drawer as it was", async () => {
      const { browser, served } = world()
      const view = await look(browser, served, { hash: "#metric=hy_spread" })
      const { page } = view
      await page.locator(".drawer .facts").waitFor()
      const tile = await page.locator('.tile a[href="#metric=hy_spread"]').elementHandle()
      const before = await page.locator(".drawer .age").textContent()
      expect(before).toContain("1 day ago")
      served.bodies = bodiesOf(stores.demo)
      await pass(view, minute_ms)
      await page.locator(".drawer .badge.demo").waitFor()
      const announced = await page.locator("#announcement").textContent()
      expect(announced).toMatch(
        /^Updated: Pressure is building, \+\d\.\d\d; \d+ bear, \d+ bull of 16/,
      )
      expect(await tile?.evaluate((one) => one.isConnected)).toBe(true)
      expect(await page.locator(".badge.stale").count()).toBe(0)
      await leave(view)
    })

    it("keeps what it has when the server fails, says so, and comes back by itself", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      for (const [failing, title] of [
        [500, "The server cannot read its data (500)"],
        [429, "Too many requests (429)"],
        [503, "Service unavailable (503)"],
        [0, "The server cannot be reached"],
      ] as const) {
        served.failing = failing
        await page.clock.runFor(minute_ms)
        const notice = page.getByRole("alert")
        await notice.getByText(title).waitFor()
        expect(await notice.textContent()).toContain("The data on this page is from 22:")
        expect(await page.locator(".tile").count()).toBe(24)
        if (failing === 0) await picture(page, "desktop-offline", false)
        served.failing = undefined
        await pass(view, 5_000)
        await notice.waitFor({ state: "detached" })
      }
      await leave(view)
    })

    it("that never had an answer says what to do, and tries later and later", async () => {
      const { browser, served } = world()
      served.failing = 500
      const view = await look(browser, served, { size: "phone" })
      const { page } = view
      await page.getByText("The server cannot read its data (500)").waitFor()
      expect(await page.locator(".problem").textContent()).toContain("Retrying in 5 s.")
      await picture(page, "phone-error")
      await page.clock.runFor(5_000)
      await page.getByText("Retrying in 10 s.").waitFor()
      await page.clock.runFor(9_000)
      expect(await page.getByText("Retrying in 10 s.").count()).toBe(1)
      await page.clock.runFor(1_000)
      await page.getByText("Retrying in 20 s.").waitFor()
      served.failing = undefined
      await page.getByRole("button", { name: "Retry now" }).click()
      await page.locator(".composite").waitFor()
      expect(await page.locator(".problem").count()).toBe(0)
      await leave(view)
    })

    it("asks for the token where there is one, and keeps it for the tab", async () => {
      const { browser, served } = world()
      served.token = "s3cret"
      const view = await look(browser, served)
      const { page } = view
      await page.getByLabel("Token").fill("wrong")
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("This dashboard is private").waitFor()
      await page.getByLabel("Token").fill("s3cret")
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.locator(".composite").waitFor()
      await page.reload()
      await page.locator(".composite").waitFor()
      await leave(view)
    })
  })
