/** Appearance of the page: three sizes, light and dark, the headline, and print. */
import type { Browser } from "playwright-core"
import { describe, expect, it } from "vitest"
import { bodiesOf, stores } from "./canned.ts"
import type { Served } from "./served.ts"
import { leave, look, overflowOf, picture, type Size, sizes } from "./shown.ts"

export interface World {
  readonly browser: Browser
  readonly served: Served
}

const names = ["phone", "tablet", "desk"] as const satisfies ReadonlyArray<Size>

/** The composite of the canned dashboard, for comparison. */
const said = (served: Served) => {
  const { composite } = JSON.parse(served.bodies.get("/api/dashboard") ?? "{}")
  return composite
}

export const describeLook = (world: () => World) => {
  describe("at each size", () => {
    for (const size of names) {
      it(`shows everything on a ${size}, without overflow`, async () => {
        const { browser, served } = world()
        const shown = await look(browser, served, { size })
        const { page } = shown
        expect(await overflowOf(page)).toBe(0)
        expect(await page.locator(".tier").count()).toBe(4)
        expect(await page.locator(".tile").count()).toBe(24)
        expect(await page.locator("#history-chart canvas").count()).toBe(1)
        expect(await page.locator("section.sheet").count()).toBe(3)
        const chart = await page.locator("#history-chart canvas").boundingBox()
        expect((chart?.x ?? 0) + (chart?.width ?? 0)).toBeLessThanOrEqual(sizes[size].width)
        await picture(page, `${size}-light`)
        await leave(shown)
      })
    }

    it("has its head in one line, or what it says of itself in a second", async () => {
      const { browser, served } = world()
      served.bodies = bodiesOf(stores.demo)
      const shown = await look(browser, served)
      const status = shown.page.locator("#header .status-parts")
      const one_line_px = 26
      for (const width of [1440, 1101, 1024, 820, 390]) {
        await shown.page.setViewportSize({ width, height: 800 })
        const height = (await status.boundingBox())?.height
        expect([width, height]).toEqual([width, expect.toSatisfy((px) => px < one_line_px)])
      }
      await leave(shown)
    })

    it("has one, two and four columns", async () => {
      const { browser, served } = world()
      const shown = await look(browser, served)
      const columns = async (size: Size) => {
        await shown.page.setViewportSize(sizes[size])
        const tiers = await shown.page.locator(".tier").all()
        const boxes = await Promise.all(tiers.map((tier) => tier.boundingBox()))
        return new Set(boxes.map((box) => box?.x)).size
      }
      expect([await columns("phone"), await columns("tablet"), await columns("desk")]).toEqual([
        1, 2, 4,
      ])
      await leave(shown)
    })
  })

  it("says in its first line what the composite means", async () => {
    const { browser, served } = world()
    const shown = await look(browser, served)
    const { z, z_label, tally } = said(served)
    expect(z_label).toBe("balanced")
    const headline = await shown.page.locator("h2.headline").textContent()
    const votes = tally.bull + tally.neutral + tally.bear
    expect(headline).toBe(
      `Pressure is balanced: ${tally.bear} bear, ${tally.bull} bull of ${votes}.`,
    )
    const sign = z < 0 ? "\u2212" : "+"
    const number = `${sign}${Math.abs(z).toFixed(2)}`
    expect(await shown.page.locator(".composite .number").textContent()).toBe(number)
    expect(await shown.page.title()).toBe(`${number} balanced \u00b7 Capital pressure`)
    const counted = await shown.page.locator(".counted").textContent()
    expect(counted).toBe(`${votes} of 24 metrics vote, 1 is stale`)
    const scale = shown.page.getByRole("img", { name: /^Scale/ })
    expect(await scale.getAttribute("aria-label")).toContain(`${number}, balanced`)
    await leave(shown)
  })

  it("marks what is stale, a gauge, without a source, or not fetched yet", async () => {
    const { browser, served } = world()
    const shown = await look(browser, served)
    const tile = (name: string) => shown.page.locator(".tile", { hasText: name })
    expect(await tile("VIX term slope").textContent()).toMatch(/20 Oct · 31 days ago.*Stale/)
    expect(await tile("Household equity share").textContent()).toContain("Gauge")
    expect(await shown.page.locator(".badge.gauge").count()).toBe(4)
    expect(await tile("Equity put/call volume").textContent()).toContain("no free source")
    expect(await shown.page.locator(".tile.is-absent", { hasText: "no free" }).count()).toBe(4)
    expect(await tile("Banks tightening").textContent()).toContain("no data yet")
    const failing = shown.page.locator(".sources tr", { hasText: "failing" })
    expect(await failing.textContent()).toContain("Cboe answered 503.")
    expect(await shown.page.locator(".badge.demo").count()).toBe(0)
    await leave(shown)
  })

  it("says Demo wherever generated data shows", async () => {
    const { browser, served } = world()
    served.bodies = bodiesOf(stores.demo)
    const shown = await look(browser, served, { hash: "#metric=nfci" })
    await shown.page.locator(".drawer .facts").waitFor()
    const count = (within: string) => shown.page.locator(`${within} .badge.demo`).count()
    expect(await count("#header")).toBe(1)
    expect(await count(".tile")).toBe(20)
    expect(await count(".watchlist tbody tr")).toBe(8)
    expect(await count(".sources tbody tr")).toBe(20)
    expect(await count(".drawer")).toBe(1)
    await picture(shown.page, "desk-demo-drawer", false)
    await leave(shown)
  })

  it("is dark by the system's setting and by the reader's, permanently", async () => {
    const { browser, served } = world()
    const shown = await look(browser, served, { colorScheme: "dark" })
    const { page } = shown
    const ground = () =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    const dark = await ground()
    await picture(page, "desk-dark")
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
    await leave(shown)
  })

  it("redraws its lines when colours change, and tiers on request", async () => {
    const { browser, served } = world()
    const shown = await look(browser, served)
    const canvas = shown.page.locator("#history-chart canvas")
    const pixels = () => canvas.evaluate((one) => (one as HTMLCanvasElement).toDataURL())
    const light = await pixels()
    await shown.page.getByLabel("Dark").check()
    const dark = await pixels()
    expect(dark).not.toBe(light)
    await shown.page.getByLabel("Tier 3").check()
    expect(await pixels()).not.toBe(dark)
    expect(await shown.page.locator("#history-chart .readout").textContent()).toContain("Tier 3")
    await leave(shown)
  })

  it("fits on paper, light and whole", async () => {
    const { browser, served } = world()
    const shown = await look(browser, served, { colorScheme: "dark" })
    await shown.page.setViewportSize({ width: 720, height: 1020 })
    await shown.page.emulateMedia({ media: "print", colorScheme: "dark" })
    // The charts are resized shortly after the page.
    await expect.poll(() => overflowOf(shown.page)).toBe(0)
    const ink = await shown.page.evaluate(() => getComputedStyle(document.documentElement).color)
    expect(ink).toBe("rgb(20, 24, 29)")
    expect(await shown.page.locator(".theme").isVisible()).toBe(false)
    expect((await shown.page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000)
    await leave(shown)
  })
}
