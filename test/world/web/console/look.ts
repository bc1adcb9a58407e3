/** Appearance of the console, view by view: sizes, colours, axe, landmarks, keys. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { expect, it } from "vitest"
import { serious } from "../axe.ts"
import { leave, look, overflowOf, picture, type Size, type View } from "../view.ts"
import { uuid } from "./canned.ts"
import { type ConsoleServed, token } from "./served.ts"

export interface ConsoleWorld {
  readonly browser: Browser
  readonly served: ConsoleServed
}

interface Looked extends BrowserContextOptions {
  readonly size?: Size
  readonly hash?: string
}

export const enter = async (page: Page, given = token) => {
  await page.getByLabel("Token", { exact: true }).fill(given)
  await page.getByRole("button", { name: "Sign in" }).click()
}

/** Opens the console with the token entered, and waits for the view that `hash` names. */
export const lookAtConsole = async (
  { browser, served }: ConsoleWorld,
  options: Looked = {},
): Promise<View> => {
  const view = await look(browser, served, { path: "/console", ...options })
  await enter(view.page)
  await view.page.locator(".view > :not(.loading)").first().waitFor()
  await view.page.locator(".view .loading").waitFor({ state: "detached" })
  return view
}

/** Opens another view as its link would. */
export const go = async (page: Page, hash: string, wait: string) => {
  await page.evaluate((to) => {
    location.hash = to
  }, hash)
  await page.locator(wait).first().waitFor()
}

export const job_past = `#past?of=share-protection.job.${uuid(9)}`

/** Each view, and an element that shows that it is rendered. */
export const places = [
  ["overview", "#overview", ".card.log"],
  ["jobs", `#jobs?job=${uuid(9)}`, ".way li"],
  ["workers", "#workers", ".sheet.workers"],
  ["protection", "#protection", ".sheet.targets"],
  ["ring", "#ring", ".ring-picture .slice"],
  ["audit", "#audit", ".event"],
  ["past", job_past, ".chart .state.lit"],
] as const

export const describeConsoleLook = (world: () => ConsoleWorld) => {
  it("shows each view on a phone and a desktop, without overflow", async () => {
    for (const size of ["phone", "desktop"] as const) {
      const view = await lookAtConsole(world(), { size })
      for (const [name, hash, wait] of places) {
        await go(view.page, hash, wait)
        expect([size, name, await overflowOf(view.page)]).toEqual([size, name, 0])
        if (size === "phone") await picture(view.page, `console-phone-${name}`)
      }
      await leave(view)
    }
  })

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing that axe finds serious when ${colorScheme}`, async () => {
      const { browser, served } = world()
      const gated = await look(browser, served, { path: "/console", colorScheme })
      await enter(gated.page, "another")
      await gated.page.locator("#sign-in-error:not(:empty)").waitFor()
      expect(await serious(gated.page)).toEqual([])
      await leave(gated)
      // Axe checks each row, so keep few: all have the same structure.
      served.events.length = 12
      served.jobs.length = 6
      const view = await lookAtConsole(world(), { colorScheme })
      const { page } = view
      for (const [name, hash, wait] of places) {
        await go(page, hash, wait)
        if (name === "audit") await page.locator(".event .type").first().click()
        expect([name, await serious(page)]).toEqual([name, []])
        await picture(page, `console-desktop-${name}-${colorScheme}`)
      }
      served.answers.set("/v1/admin/workers", 403)
      await go(page, "#workers", ".problem")
      expect(await serious(page)).toEqual([])
      await leave(view)
    })
  }

  it("has landmarks, one title, headings in their order, captions, and a way by Tab", async () => {
    const view = await lookAtConsole(world())
    const { page } = view
    for (const [name, hash, wait] of places) {
      await go(page, hash, wait)
      const levels = await page.evaluate(() =>
        [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1])),
      )
      expect([name, levels.filter((level) => level === 1)]).toEqual([name, [1]])
      const jumps = levels.filter((level, index) => level - (levels[index - 1] ?? 0) > 1)
      expect([name, jumps]).toEqual([name, []])
      expect([name, await page.locator("table:not(:has(caption))").count()]).toEqual([name, 0])
      const here = page.getByRole("navigation", { name: "Views" }).locator("[aria-current=page]")
      expect(await here.getAttribute("href")).toBe(`#${name}`)
    }
    await page.locator("body").focus()
    const stops: string[] = []
    for (let stop = 0; stop < 30; stop++) {
      await page.keyboard.press("Tab")
      stops.push(
        await page.evaluate(() => {
          const one = document.activeElement
          const name = one?.id || one?.getAttribute("href") || ""
          return `${one?.tagName.toLowerCase()} ${name}`.trim()
        }),
      )
    }
    expect(stops).toContain("a #overview")
    expect(stops).toContain("input travel")
    await leave(view)
  })

  it("prints without what only a screen is for", async () => {
    const view = await lookAtConsole(world(), { hash: job_past })
    const { page } = view
    await page.locator(".chart .state.lit").waitFor()
    await page.emulateMedia({ media: "print" })
    for (const gone of ["#views", ".slider", ".filters", ".theme"]) {
      expect([gone, await page.locator(gone).first().isVisible()]).toEqual([gone, false])
    }
    expect(await page.locator(".chart").isVisible()).toBe(true)
    await leave(view)
  })
}
