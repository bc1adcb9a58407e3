/** A running search: progress, cancellation, many rows, the file. */
import { readFile } from "node:fs/promises"
import type { ServerResponse } from "node:http"
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { csv_header, rowOf } from "#schemas/carrier-search/format.ts"
import { leave, picture } from "../view.ts"
import { type CarrierWorld, headlineOf, lookAtCarriers, searchFor } from "./look.ts"
import { answering, begun, line, row, someNames } from "./served.ts"

const saved = async (page: Page, button: string) => {
  const coming = page.waitForEvent("download")
  await page.getByRole("button", { name: button }).click()
  const download = await coming
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") }
}

/** Lets the test write the response to the next search. */
const tapped = (world: CarrierWorld) => {
  const tap: { response?: ServerResponse } = {}
  world.served.answer = (response, range) => {
    begun(response, range)
    tap.response = response
  }
  const write = (...lines: string[]) => tap.response?.write(lines.join(""))
  return { write, end: (text: string) => tap.response?.end(text), is_open: () => !!tap.response }
}

const at = (done: number, total: number, found: number) =>
  line({ progress: { done, total, found } })

/** Searches the numbers 1 to 1000, until the response has started. */
const searchIn = async (page: Page, tap: ReturnType<typeof tapped>) => {
  await searchFor(page, "1", "1000")
  await expect.poll(tap.is_open).toBe(true)
}

export const describeCarrierRun = (world: () => CarrierWorld) => {
  describe("a search under way", () => {
    it("shows carriers as they come, how far it is, how fast, and how long still", async () => {
      const tap = tapped(world())
      const view = await lookAtCarriers(world())
      const { page } = view
      const words = () => page.locator(".words").textContent()
      await searchFor(page, "1", "10000")
      await expect.poll(tap.is_open).toBe(true)
      await expect.poll(words).toBe("0 of 10,000 numbers")
      tap.write(row(3, "First LLC"), at(1000, 10_000, 1))
      await expect.poll(() => headlineOf(page)).toBe("1 carrier so far in MC 1 to 10000")
      await page.locator(".found tbody tr").getByText("First LLC").waitFor()
      await page.clock.runFor(2_000)
      tap.write(row(1500, "Second LLC"), at(2000, 10_000, 2))
      await page.getByText("Second LLC").waitFor()
      expect(await page.locator(".found tbody th").allTextContents()).toEqual(["3", "1500"])
      await expect.poll(words).toMatch(/^2,000 of 10,000 numbers . [\d,]+ per second . .+ left$/)
      expect(await page.title()).toBe("20% \u00b7 Carriers")
      const bar = page.getByRole("progressbar", { name: "Numbers looked up" })
      expect(await bar.evaluate((one: HTMLProgressElement) => one.position)).toBe(0.2)
      await picture(page, "carriers-desktop-running", false)
      await page.clock.runFor(11_000)
      await expect.poll(words).toContain("no data for 1")
      tap.end(line({ summary: { total: 10_000, found: 2, duration_ms: 4321, registry: "fmcsa" } }))
      await expect.poll(words).toBe("10,000 numbers looked up at FMCSA \u00b7 4.3 s")
      expect(await bar.isVisible()).toBe(false)
      expect(await page.getByRole("button", { name: "Cancel" }).isVisible()).toBe(false)
      await leave(view)
    })

    it("is said politely at its beginning, now and then, and at its end", async () => {
      const tap = tapped(world())
      const view = await lookAtCarriers(world())
      const { page } = view
      const spoken = page.locator("#announcement")
      await page.evaluate(() => {
        const heard: string[] = []
        const place = document.querySelector("#announcement")
        Reflect.set(window, "heard", heard)
        new MutationObserver(() => heard.push(place?.textContent ?? "")).observe(
          place ?? document,
          { childList: true, characterData: true, subtree: true },
        )
      })
      expect(await spoken.getAttribute("aria-live")).toBe("polite")
      await searchIn(page, tap)
      for (let mc = 1; mc <= 50; mc++) tap.write(row(mc, "X LLC"), at(mc * 10, 1000, mc))
      await expect.poll(() => headlineOf(page)).toBe("50 carriers so far in MC 1 to 1000")
      await page.clock.runFor(16_000)
      tap.end(line({ summary: { total: 1000, found: 50, duration_ms: 9, registry: "mirror" } }))
      await expect.poll(() => spoken.textContent()).toContain("Done")
      expect(await page.evaluate(() => Reflect.get(window, "heard"))).toEqual([
        "Searching 1,000 numbers, MC 1 to 1000.",
        "50 percent; 50 carriers so far in MC 1 to 1000.",
        "Done: 50 carriers in MC 1 to 1000.",
      ])
      await leave(view)
    })

    it("that is cancelled ends at the server, and keeps what was found", async () => {
      const { served } = world()
      const tap = tapped(world())
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchIn(page, tap)
      tap.write(row(3, "First LLC"), at(500, 1000, 1))
      await page.getByText("First LLC").waitFor()
      await page.getByRole("button", { name: "Cancel" }).press("Enter")
      await expect.poll(() => served.hung_up).toBe(1)
      const words = page.locator(".words")
      await expect.poll(() => words.textContent()).toContain("Cancelled after 500 of 1,000 numbers")
      const focused = () => page.evaluate(() => document.activeElement?.textContent)
      await expect.poll(focused).toBe("Search")
      const { name, text } = await saved(page, "Download partial CSV")
      expect(name).toBe("carriers-1-1000-incomplete.csv")
      expect(text).toBe(`${csv_header}${rowOf(3, "First LLC", "csv")}`)
      expect(await page.locator(".problem").count()).toBe(0)
      await leave(view)
    })

    it("ends when another is begun", async () => {
      const { served } = world()
      const tap = tapped(world())
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchIn(page, tap)
      tap.write(row(3, "Old LLC"), at(500, 1000, 1))
      await page.getByText("Old LLC").waitFor()
      served.answer = answering(someNames)
      await searchFor(page, "2", "21")
      await expect.poll(() => headlineOf(page)).toBe("10 carriers in MC 2 to 21")
      await expect.poll(() => served.hung_up).toBe(1)
      expect(await page.getByText("Old LLC").count()).toBe(0)
      await leave(view)
    })
  })

  describe("20,000 carriers", () => {
    it("are a page of a hundred at a time, each within reach", async () => {
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchFor(page, "1", "40000")
      await expect.poll(() => headlineOf(page)).toBe("20,000 carriers in MC 1 to 40000")
      const rows = page.locator(".found tbody tr")
      const first = () => rows.first().locator("th").textContent()
      const where = () => page.locator(".turner .rows").textContent()
      expect([await rows.count(), await first()]).toEqual([100, "1"])
      expect(await where()).toBe("Rows 1 to 100 of 20,000")
      await page.getByRole("button", { name: "Next page" }).click()
      expect([await rows.count(), await first()]).toEqual([100, "201"])
      await page.getByRole("button", { name: "Last page" }).click()
      const next = page.getByRole("button", { name: "Next page" })
      expect(await next.getAttribute("aria-disabled")).toBe("true")
      await next.press("Enter")
      expect([await where(), await first()]).toEqual(["Rows 19,901 to 20,000 of 20,000", "39801"])
      await page.getByRole("textbox", { name: "Page" }).fill("77")
      await page.getByRole("textbox", { name: "Page" }).press("Enter")
      expect([await where(), await first()]).toEqual(["Rows 7,601 to 7,700 of 20,000", "15201"])
      await page.getByRole("button", { name: "First page" }).click()
      expect(await first()).toBe("1")
      await leave(view)
    })

    it("go into one file", async () => {
      const view = await lookAtCarriers(world(), { hash: "#start=1&end=40000" })
      await expect.poll(() => headlineOf(view.page)).toContain("20,000 carriers")
      const { name, text } = await saved(view.page, "Download CSV")
      expect(name).toBe("carriers-1-40000.csv")
      const lines = text.split("\r\n")
      expect([lines.length, lines.at(-2)]).toEqual([
        20_002,
        rowOf(39_999, someNames(39_999) ?? "", "csv").trim(),
      ])
      await leave(view)
    })
  })

  it("shows names as they are, markup and all", async () => {
    const names = new Map([
      [1, "<b>Bold</b> & Sons"],
      [2, '=HYPERLINK("http://x")'],
      [3, "Fr\u00e8res, \u798f \ud83d\ude9a"],
    ])
    world().served.answer = answering((mc) => names.get(mc))
    const view = await lookAtCarriers(world(), { hash: "#start=1&end=3" })
    const { page } = view
    await page.locator(".found tbody tr").nth(2).waitFor()
    expect(await page.locator(".found td.name").allTextContents()).toEqual([...names.values()])
    const { text } = await saved(page, "Download CSV")
    const rows = [...names].map(([mc, name]) => rowOf(mc, name, "csv"))
    expect(text).toBe(csv_header + rows.join(""))
    await leave(view)
  })
}
