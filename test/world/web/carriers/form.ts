/** The carrier search form: accepted input, error messages, and searches from the URL. */
import { describe, expect, it } from "vitest"
import { leave } from "../view.ts"
import { type CarrierWorld, headlineOf, lookAtCarriers, searchFor } from "./look.ts"
import { refusing, sources } from "./served.ts"

export const describeCarrierForm = (world: () => CarrierWorld) => {
  describe("the form", () => {
    it("says what is wrong in the server's order, leads there, and asks nothing", async () => {
      const { served } = world()
      const view = await lookAtCarriers(world())
      const { page } = view
      for (const [start, end, field, text] of [
        ["", "x", "start", "Enter the first MC number."],
        [
          "abc",
          "",
          "start",
          "The first MC number must consist of digits, such as 123456 or MC-123456.",
        ],
        [
          "1.5",
          "9",
          "start",
          "The first MC number must consist of digits, such as 123456 or MC-123456.",
        ],
        ["0", "9", "start", "MC numbers start at 1."],
        ["1", "", "end", "Enter the last MC number."],
        ["1", "-9", "end", "MC numbers start at 1."],
        ["1", "100000000", "end", "MC numbers end at 99,999,999."],
        ["9", "8", "end", "The last number must not be less than the first, 9."],
      ] as const) {
        await searchFor(page, start, end)
        expect([start, end, await page.locator("#mistake").textContent()]).toEqual([
          start,
          end,
          text,
        ])
        expect(await page.locator("[aria-invalid]").getAttribute("id")).toBe(field)
        const focused = await page.evaluate(() => document.activeElement?.id)
        expect(focused).toBe(field)
      }
      expect(served.requests).toEqual([])
      await page.getByLabel("Last MC number").fill("90")
      expect(await page.locator("#mistake").textContent()).toBe("")
      expect(await page.locator("[aria-invalid]").count()).toBe(0)
      await leave(view)
    })

    it("takes numbers as people paste them, and counts them", async () => {
      const { served } = world()
      const view = await lookAtCarriers(world())
      const { page } = view
      await page.getByLabel("First MC number").fill(" MC-1,001 ")
      await page.getByLabel("Last MC number").fill("mc 2 000")
      expect(await page.locator("output").textContent()).toBe("1,000 numbers")
      await page.getByRole("button", { name: "Search" }).click()
      await expect.poll(() => headlineOf(page)).toBe("500 carriers in MC 1001 to 2000")
      expect(served.requests).toEqual(["1001-2000"])
      await leave(view)
    })

    it("shows the server's validation errors next to the fields", async () => {
      const { served } = world()
      const text = "he range has 2000000 MC numbers; the maximum is 1000000"
      served.answer = refusing(400, `t${text}`)
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchFor(page, "1", "2000000")
      await expect.poll(() => page.locator("#mistake").textContent()).toBe(`T${text}.`)
      expect(await page.locator(".result").isVisible()).toBe(false)
      expect(await page.locator(".problem").count()).toBe(0)
      await leave(view)
    })

    it("is used by keys alone, in the order of the page", async () => {
      const view = await lookAtCarriers(world())
      const { page } = view
      const stops: string[] = []
      for (let times = 0; times < 8; times++) {
        await page.keyboard.press("Tab")
        stops.push(
          await page.evaluate(() => {
            const one = document.activeElement
            return one?.getAttribute("href") ?? one?.getAttribute("name") ?? one?.textContent ?? ""
          }),
        )
      }
      expect(stops).toEqual([
        "#main",
        "/",
        "/carriers",
        "/plants",
        "theme",
        "start",
        "end",
        "Search",
      ])
      await leave(view)
    })
  })

  describe("an address", () => {
    it("is searched when it is opened, and keeps what is searched, back and forth", async () => {
      const { served } = world()
      const view = await lookAtCarriers(world(), { hash: "#start=1&end=20" })
      const { page } = view
      await expect.poll(() => headlineOf(page)).toBe("10 carriers in MC 1 to 20")
      expect(await page.getByLabel("Last MC number").inputValue()).toBe("20")
      await searchFor(page, "1", "40")
      await expect.poll(() => new URL(page.url()).hash).toBe("#start=1&end=40")
      await page.goBack()
      await expect.poll(() => headlineOf(page)).toBe("10 carriers in MC 1 to 20")
      await page.goForward()
      await expect.poll(() => headlineOf(page)).toBe("20 carriers in MC 1 to 40")
      expect(served.requests).toEqual(["1-20", "1-40", "1-20", "1-40"])
      expect(await page.title()).toBe("20 carriers in MC 1 to 40 \u00b7 Carriers")
      await leave(view)
    })

    it("that means a thousand questions to FMCSA waits for the person", async () => {
      const { served } = world()
      served.source = sources.fmcsa
      const view = await lookAtCarriers(world(), { hash: "#start=1&end=1001" })
      const { page } = view
      await expect.poll(() => page.getByLabel("Last MC number").inputValue()).toBe("1001")
      await expect
        .poll(() => page.locator("#announcement").textContent())
        .toBe("The link contains a long search. Press Search to start it.")
      expect(served.requests).toEqual([])
      await page.getByRole("button", { name: "Search" }).click()
      await expect.poll(() => served.requests).toEqual(["1-1001"])
      await leave(view)
    })

    it("that is no range says so", async () => {
      const { served } = world()
      const view = await lookAtCarriers(world(), { hash: "#start=7&end=<b>" })
      const mistake = view.page.locator("#mistake")
      await expect
        .poll(() => mistake.textContent())
        .toContain("The last MC number must consist of digits")
      expect(served.requests).toEqual([])
      await leave(view)
    })
  })
}
