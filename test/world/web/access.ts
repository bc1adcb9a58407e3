/** Keyboard and screen reader access: no serious axe findings, and everything reachable. */
import { describe, expect, it } from "vitest"
import { serious } from "./axe.ts"
import { bodiesOf, stores } from "./canned.ts"
import type { World } from "./look.ts"
import { leave, look } from "./view.ts"

export const describeAccess = (world: () => World) =>
  describe("access", () => {
    for (const colorScheme of ["light", "dark"] as const) {
      it(`finds nothing serious when ${colorScheme}: page, drawer, no data, fault`, async () => {
        const { browser, served } = world()
        const view = await look(browser, served, { colorScheme })
        const { page } = view
        await page.getByLabel("Tier 2").check()
        await page.locator("summary").click()
        expect(await serious(page)).toEqual([])
        await page.evaluate(() => {
          location.hash = "#metric=net_liquidity"
        })
        await page.locator(".drawer .facts").waitFor()
        expect(await serious(page)).toEqual([])
        await page.keyboard.press("Escape")
        served.bodies = bodiesOf(stores.empty, undefined, false)
        await page.clock.runFor(60_000)
        await page.getByText("No data yet").waitFor()
        expect(await serious(page)).toEqual([])
        served.failing = 500
        await page.clock.runFor(60_000)
        await page.getByRole("alert").waitFor()
        expect(await serious(page)).toEqual([])
        await leave(view)
      })
    }

    it("sees what axe would find", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      await view.page.evaluate(() =>
        document.querySelector("h1")?.append(document.createElement("button")),
      )
      expect(await serious(view.page)).toHaveLength(1)
      await leave(view)
    })

    it("has a way by Tab from the top through switch, lines, chart, tiles and tables", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      const stops: string[] = []
      const stops_max = 80
      while (stops.length < stops_max) {
        await page.keyboard.press("Tab")
        const stop = await page.evaluate(() => {
          const one = document.activeElement
          if (one === null || one === document.body) return undefined
          const name = one.getAttribute("aria-label") ?? one.getAttribute("href") ?? ""
          return `${one.tagName.toLowerCase()} ${one.getAttribute("name") ?? name}`.trim()
        })
        if (stop === undefined) break
        stops.push(stop)
      }
      expect(stops[0]).toBe("a #main")
      expect(stops.slice(1, 5)).toEqual(["a /", "a /carriers", "a /plants", "input theme"])
      expect(stops.slice(5, 10)).toEqual(Array(5).fill("input line"))
      expect(stops[10]).toMatch(/^div Composite history: move/)
      expect(stops[11]).toBe("summary")
      const metric = stops.filter((stop) => stop.startsWith("a #metric="))
      expect(metric).toHaveLength(48)
      await leave(view)
    })

    it("reads the chart by arrow keys, and as a table", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      const { composite_history } = JSON.parse(served.bodies.get("/api/dashboard") ?? "{}")
      const plane = page.getByRole("slider", { name: /^Composite history/ })
      await plane.focus()
      await page.keyboard.press("ArrowLeft")
      await page.keyboard.press("ArrowLeft")
      const { z } = composite_history.at(-3)
      const wanted = `Composite ${z < 0 ? "\u2212" : "+"}${Math.abs(z).toFixed(2)}`
      expect(await plane.getAttribute("aria-valuetext")).toMatch(/^18 Nov 2026: S&P 500 [\d,]+/)
      expect(await plane.getAttribute("aria-valuetext")).toContain(wanted)
      await page.keyboard.press("Home")
      expect(await plane.getAttribute("aria-valuenow")).toBe("0")
      await page.keyboard.press("ArrowLeft")
      expect(await plane.getAttribute("aria-valuenow")).toBe("0")
      await page.locator("summary").click()
      const rows = () => page.locator(".values tbody tr").count()
      await expect.poll(rows).toBe(composite_history.length)
      expect(await page.locator(".values tbody th").first().textContent()).toBe("20 Nov 2026")
      await leave(view)
    })

    it("reads the chart by a finger, which leaves it where it was lifted", async () => {
      const { browser, served } = world()
      const finger = { size: "phone", hasTouch: true, isMobile: true } as const
      const view = await look(browser, served, finger)
      const { page } = view
      const plane = page.locator("#history-chart .u-over")
      await plane.scrollIntoViewIfNeeded()
      const { x = 0, y = 0, width = 0 } = (await plane.boundingBox()) ?? {}
      const at = async () => {
        const slider = page.getByRole("slider", { name: /^Composite history/ })
        return Number(await slider.getAttribute("aria-valuenow"))
      }
      await page.touchscreen.tap(x + width / 2, y + 50)
      await expect.poll(at).toSatisfy((index: number) => Math.abs(index - 126) < 5)
      const touches = await page.context().newCDPSession(page)
      const touch = (type: "touchStart" | "touchMove" | "touchEnd", part: number) =>
        touches.send("Input.dispatchTouchEvent", {
          type,
          touchPoints: type === "touchEnd" ? [] : [{ x: x + width * part, y: y + 50 }],
        })
      await touch("touchStart", 0.5)
      for (const part of [0.4, 0.3, 0.2, 0.1]) await touch("touchMove", part)
      await touch("touchEnd", 0.1)
      await expect.poll(at).toSatisfy((index: number) => Math.abs(index - 25) < 5)
      await leave(view)
    })

    it("has landmarks, one title, and headings in their order", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const { page } = view
      for (const role of ["banner", "main", "status"] as const) {
        expect(await page.getByRole(role).count()).toBe(1)
      }
      const levels = await page.evaluate(() =>
        [...document.querySelectorAll("h1, h2, h3, h4")]
          .filter((one) => one.closest("dialog") === null)
          .map((one) => Number(one.tagName[1])),
      )
      expect(levels.filter((level) => level === 1)).toHaveLength(1)
      const jumps = levels.filter((level, index) => level - (levels[index - 1] ?? 0) > 1)
      expect(jumps).toEqual([])
      expect(await page.locator("table:not(:has(caption))").count()).toBe(0)
      await leave(view)
    })
  })
