/** Appearance and use of the carrier search page: sizes, colours, registry, keys, axe. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { serious } from "../axe.ts"
import { leave, look, overflowOf, picture, type Size, type View } from "../view.ts"
import { answering, type CarrierServed, refusing, sources } from "./served.ts"

export interface CarrierWorld {
  readonly browser: Browser
  readonly served: CarrierServed
}

interface Looked extends BrowserContextOptions {
  readonly size?: Size
  readonly hash?: string
}

/** Opens the page and waits until it shows its registry. */
export const lookAtCarriers = async (
  { browser, served }: CarrierWorld,
  options: Looked = {},
): Promise<View> => {
  const view = await look(browser, served, { path: "/carriers", ...options })
  await view.page.locator("#no-registry, .source, .registry > .failure").waitFor()
  return view
}

/** Enters a range and presses Enter. */
export const searchFor = async (page: Page, start: string, end: string) => {
  await page.getByLabel("First MC number").fill(start)
  await page.getByLabel("Last MC number").fill(end)
  await page.getByLabel("Last MC number").press("Enter")
}

export const headlineOf = (page: Page) => page.locator("#result").textContent()

const names = ["phone", "tablet", "desktop"] as const satisfies ReadonlyArray<Size>

const describeSource = (world: () => CarrierWorld) =>
  describe("the registry", () => {
    it("is shown with its age and its last failure", async () => {
      const { served } = world()
      const view = await lookAtCarriers(world())
      const line = () => view.page.locator(".source").textContent()
      const mirror =
        "712,004 carriers \u00b7 2,104,332 dockets \u00b7 as of 12 Nov 2026 (8 days ago) " +
        "\u00b7 imported 3 h ago"
      expect(await line()).toBe(`Mirror of FMCSA's public files${mirror}`)
      served.source = sources.fmcsa
      await view.page.clock.runFor(30_000)
      await expect.poll(line).toContain("FMCSA QCMobile")
      expect(await line()).toContain("8 concurrent requests \u00b7 last response")
      expect(await line()).toContain("Last error 2 h ago: It answered 503.")
      await leave(view)
    })

    it("that is generated says so plainly", async () => {
      world().served.source = sources.demo
      const view = await lookAtCarriers(world())
      const { page } = view
      expect(await page.locator(".source").textContent()).toContain("These carriers are generated.")
      expect(await page.locator(".source .badge.demo").count()).toBe(1)
      expect(await page.locator("#header .badge.demo").count()).toBe(1)
      await leave(view)
    })

    it("that is configured but not used is shown next to the one in use", async () => {
      const { served } = world()
      served.source = sources.fmcsa
      served.spare = sources.demo
      const view = await look(world().browser, served, { path: "/carriers" })
      const { page } = view
      await page.locator(".source.spare").waitFor()
      const names = await page.locator(".source .standing").allTextContents()
      expect(names).toEqual(["FMCSA QCMobile", "Demo mirror"])
      const spare = await page.locator(".source.spare").textContent()
      expect(spare).toContain("configured, not in use \u00b7 14,000 carriers \u00b7 40,000 dockets")
      expect(await page.locator("#header .badge.demo").count()).toBe(0)
      await leave(view)
    })

    it("that does not answer says why", async () => {
      world().served.source = sources.ill
      const view = await lookAtCarriers(world())
      const failure = view.page.locator(".source .failure")
      expect(await failure.textContent()).toBe("FMCSA refuses the web key: set another.")
      expect(await view.page.locator(".source .standing.failing").count()).toBe(1)
      await leave(view)
    })

    it("that is missing shows the commands to run, and appears without a reload", async () => {
      const { served } = world()
      served.source = sources.none
      const permissions = ["clipboard-read", "clipboard-write"]
      const view = await lookAtCarriers(world(), { permissions })
      const { page } = view
      expect(await page.locator(".command code").allTextContents()).toEqual([
        "npm run almanac -- carriers import --demo",
        "npm run almanac -- carriers import legacy.csv motus.csv",
        "FMCSA_WEB_KEY=your-key npm start",
      ])
      await page.getByRole("button", { name: /^Copy: .*--demo/ }).click()
      await page.getByText("Copied").first().waitFor()
      await picture(page, "carriers-desktop-none")
      served.source = sources.demo
      await page.clock.runFor(5_000)
      await page.locator(".source").waitFor()
      expect(await page.locator("#no-registry").count()).toBe(0)
      await leave(view)
    })

    it("of which the server says nothing is said to be unknown", async () => {
      world().served.source = undefined
      const view = await lookAtCarriers(world())
      const text = "The status of the registry is unavailable."
      expect(await view.page.locator(".registry .failure").textContent()).toBe(text)
      await leave(view)
    })
  })

export const describeCarrierLook = (world: () => CarrierWorld) => {
  for (const size of names) {
    it(`shows a search on a ${size}, without overflow`, async () => {
      const view = await lookAtCarriers(world(), { size })
      const { page } = view
      await picture(page, `carriers-${size}-first`)
      await searchFor(page, "1", "900")
      await expect.poll(() => headlineOf(page)).toBe("450 carriers in MC 1 to 900")
      expect(await overflowOf(page)).toBe(0)
      expect(await page.locator(".found tbody tr").count()).toBe(100)
      await picture(page, `carriers-${size}-light`)
      await leave(view)
    })
  }

  it("is dark where the reader wants it, as the dashboard then is", async () => {
    const view = await lookAtCarriers(world(), { hash: "#start=1&end=300" })
    const { page } = view
    await expect.poll(() => headlineOf(page)).toContain("150 carriers")
    await page.getByLabel("Dark").check()
    await picture(page, "carriers-desktop-dark")
    const ground = () =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    const dark = await ground()
    await page.goto(`${world().served.origin}/plants`)
    await page.getByLabel("Dark").waitFor()
    expect([await page.getByLabel("Dark").isChecked(), await ground()]).toEqual([true, dark])
    await leave(view)
  })

  it("leads to the other pages, and says which one it is", async () => {
    const view = await lookAtCarriers(world())
    const way = view.page.getByRole("navigation", { name: "Pages" }).getByRole("link")
    expect(await way.allTextContents()).toEqual(["Capital pressure", "Carriers", "Plants"])
    const here = view.page.locator("#header [aria-current=page]")
    expect(await here.getAttribute("href")).toBe("/carriers")
    await way.last().click()
    await view.page.waitForURL("**/plants")
    await leave(view)
  })

  it("leads to no page that is not served", async () => {
    const view = await lookAtCarriers(world())
    const { page } = view
    await page.route("**/carriers", async (route) => {
      const html = await (await route.fetch()).text()
      await route.fulfill({ body: html.replace(/data-pages="[^"]*"/, 'data-pages="/carriers"') })
    })
    await page.reload()
    await page.locator(".source").waitFor()
    expect(await page.getByRole("navigation").count()).toBe(0)
    await leave(view)
  })

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing that axe finds serious when ${colorScheme}`, async () => {
      const { served } = world()
      const view = await lookAtCarriers(world(), { colorScheme })
      const { page } = view
      expect(await serious(page)).toEqual([])
      await searchFor(page, "1", "900")
      await page.locator(".turner").waitFor()
      expect(await serious(page)).toEqual([])
      await searchFor(page, "9", "1")
      expect(await serious(page)).toEqual([])
      served.answer = answering(() => undefined)
      await searchFor(page, "1", "5")
      await page.getByRole("heading", { name: "No carriers in MC 1 to 5" }).waitFor()
      expect(await serious(page)).toEqual([])
      served.answer = refusing(502, "registry lookup failed for 1 of 5 MC numbers")
      served.source = sources.none
      await searchFor(page, "1", "4")
      await page.locator("#no-registry").waitFor()
      await page.locator(".problem").waitFor()
      expect(await serious(page)).toEqual([])
      await leave(view)
    })
  }

  it("has landmarks, one title, headings in their order, and a caption on its table", async () => {
    const view = await lookAtCarriers(world(), { hash: "#start=1&end=9" })
    const { page } = view
    await page.locator(".found tbody tr").first().waitFor()
    for (const role of ["banner", "main", "status"] as const) {
      expect([
        role,
        (await page.locator(`[role=${role}]`).or(page.getByRole(role)).count()) > 0,
      ]).toEqual([role, true])
    }
    const levels = await page.evaluate(() =>
      [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1])),
    )
    expect(levels).toEqual([1, 2, 2])
    expect(await page.locator("table:not(:has(caption))").count()).toBe(0)
    await leave(view)
  })

  describeSource(world)
}
