/** Appearance of the page: three sizes, light and dark, the headline, and print. */
import type { Browser } from "playwright-core"
import { describe, expect, it } from "vitest"
import { bodiesOf, stores } from "./canned.ts"
import type { Served } from "./served.ts"
import { leave, look, overflowOf, picture, type Size, sizes } from "./view.ts"

export interface World {
  readonly browser: Browser
  readonly served: Served
}

const names = ["phone", "tablet", "desktop"] as const satisfies ReadonlyArray<Size>

/** The composite of the canned dashboard, for comparison. */
const compositeOf = (served: Served) => {
  const { composite } = JSON.parse(served.bodies.get("/api/dashboard") ?? "{}")
  return composite
}

export const describeLook = (world: () => World) => {
  describe("at each size", () => {
    for (const size of names) {
      it(`shows everything on a ${size}, without overflow`, async () => {
        const { browser, served } = world()
        const view = await look(browser, served, { size })
        const { page } = view
        expect(await overflowOf(page)).toBe(0)
        expect(await page.locator(".tier").count()).toBe(4)
        expect(await page.locator(".tile").count()).toBe(24)
        expect(await page.locator("#history-chart canvas").count()).toBe(1)
        expect(await page.locator("section.sheet").count()).toBe(3)
        const chart = await page.locator("#history-chart canvas").boundingBox()
        expect((chart?.x ?? 0) + (chart?.width ?? 0)).toBeLessThanOrEqual(sizes[size].width)
        await picture(page, `${size}-light`)
        await leave(view)
      })
    }

    it("has its head in one line, or what it says of itself in a second", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.demo)
      const view = await look(browser, served)
      const status = view.page.locator("#header .status-parts")
      const one_line_px = 26
      for (const width of [1440, 1101, 1024, 820, 390]) {
        await view.page.setViewportSize({ width, height: 800 })
        const height = (await status.boundingBox())?.height
        expect([width, height]).toEqual([width, expect.toSatisfy((px) => px < one_line_px)])
      }
      await leave(view)
    })

    it("has one, two and four columns", async () => {
      const { browser, served } = world()
      const view = await look(browser, served)
      const columns = async (size: Size) => {
        await view.page.setViewportSize(sizes[size])
        const tiers = await view.page.locator(".tier").all()
        const boxes = await Promise.all(tiers.map((tier) => tier.boundingBox()))
        return new Set(boxes.map((box) => box?.x)).size
      }
      expect([await columns("phone"), await columns("tablet"), await columns("desktop")]).toEqual([
        1, 2, 4,
      ])
      await leave(view)
    })
  })

  it("says in its first line what the composite means", async () => {
    const { browser, served } = world()
    const view = await look(browser, served)
    const { z, z_label, tally } = compositeOf(served)
    expect(z_label).toBe("balanced")
    const headline = await view.page.locator("h2.headline").textContent()
    const votes = tally.bull + tally.neutral + tally.bear
    expect(headline).toBe(
      `Pressure is balanced: ${tally.bear} bear, ${tally.bull} bull of ${votes}.`,
    )
    const sign = z < 0 ? "\u2212" : "+"
    const number = `${sign}${Math.abs(z).toFixed(2)}`
    expect(await view.page.locator(".composite .number").textContent()).toBe(number)
    expect(await view.page.title()).toBe(`${number} balanced \u00b7 Capital pressure`)
    const counted = await view.page.locator(".counted").textContent()
    expect(counted).toBe(`${votes} of 24 metrics vote, 1 is stale`)
    const scale = view.page.getByRole("img", { name: /^Scale/ })
    expect(await scale.getAttribute("aria-label")).toContain(`${number}, balanced`)
    await leave(view)
  })

  it("marks what is stale, a gauge, without a source, or not fetched yet", async () => {
    const { browser, served } = world()
    const view = await look(browser, served)
    const tile = (name: string) => view.page.locator(".tile", { hasText: name })
    expect(await tile("VIX term slope").textContent()).toMatch(/20 Oct · 31 days ago.*Stale/)
    expect(await tile("Household equity share").textContent()).toContain("Gauge")
    expect(await view.page.locator(".badge.gauge").count()).toBe(4)
    expect(await tile("Equity put/call volume").textContent()).toContain("no free source")
    expect(await view.page.locator(".tile.is-absent", { hasText: "no free" }).count()).toBe(4)
    expect(await tile("Banks tightening").textContent()).toContain("no data yet")
    const failing = view.page.locator(".sources tr", { hasText: "failing" })
    expect(await failing.textContent()).toContain("Cboe answered 503.")
    expect(await view.page.locator(".badge.demo").count()).toBe(0)
    await leave(view)
  })

  it("says Demo wherever generated data shows", async () => {
    const { browser, served } = world()
    served.bodies = bodiesOf(stores.demo)
    const view = await look(browser, served, { hash: "#metric=nfci" })
    await view.page.locator(".drawer .facts").waitFor()
    const count = (within: string) => view.page.locator(`${within} .badge.demo`).count()
    expect(await count("#header")).toBe(1)
    expect(await count(".tile")).toBe(20)
    expect(await count(".watchlist tbody tr")).toBe(8)
    expect(await count(".sources tbody tr")).toBe(20)
    expect(await count(".drawer")).toBe(1)
    await picture(view.page, "desktop-demo-drawer", false)
    await leave(view)
  })

  it("is dark by the system's setting and by the reader's, permanently", async () => {
    const { browser, served } = world()
    const view = await look(browser, served, { colorScheme: "dark" })
    const { page } = view
    const ground = () =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    const dark = await ground()
    await picture(page, "desktop-dark")
    await page.getByLabel("Light").check()
    const light = await ground()
    expect(light).not.toBe(dark)
    await page.reload()
    await page.locator(".composite").waitFor()
    expect(await ground()).toBe(light)
    expect(await page.getByLabel("Light").isChecked()).toBe(true)
    await page.getByLabel("Auto").check()
    expect(await ground()).toBe(dark)
    await page.emulateMedia({ colorScheme: "light" })
    expect(await ground()).toBe(light)
    await page.setViewportSize(sizes.phone)
    await page.getByLabel("Dark").check()
    expect(await ground()).toBe(dark)
    await picture(page, "phone-dark")
    await leave(view)
  })

  it("redraws its lines when colours change, and tiers on request", async () => {
    const { browser, served } = world()
    const view = await look(browser, served)
    const canvas = view.page.locator("#history-chart canvas")
    const pixels = () => canvas.evaluate((one) => (one as HTMLCanvasElement).toDataURL())
    const light = await pixels()
    await view.page.getByLabel("Dark").check()
    const dark = await pixels()
    expect(dark).not.toBe(light)
    await view.page.getByLabel("Tier 3").check()
    expect(await pixels()).not.toBe(dark)
    expect(await view.page.locator("#history-chart .readout").textContent()).toContain("Tier 3")
    await leave(view)
  })

  it("fits on paper, light and whole", async () => {
    const { browser, served } = world()
    const view = await look(browser, served, { colorScheme: "dark" })
    await view.page.setViewportSize({ width: 720, height: 1020 })
    await view.page.emulateMedia({ media: "print", colorScheme: "dark" })
    // The charts are resized shortly after the page.
    await expect.poll(() => overflowOf(view.page)).toBe(0)
    const ink = await view.page.evaluate(() => getComputedStyle(document.documentElement).color)
    expect(ink).toBe("rgb(20, 24, 29)")
    expect(await view.page.locator(".theme").isVisible()).toBe(false)
    expect((await view.page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000)
    await leave(view)
  })
}
