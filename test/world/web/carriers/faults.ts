/** The carrier search page after failed searches: error messages and advice. */
import { describe, expect, it } from "vitest"
import { leave, picture } from "../view.ts"
import { type CarrierWorld, headlineOf, lookAtCarriers, searchFor } from "./look.ts"
import { type Answer, answering, begun, line, refusing, row, someNames } from "./served.ts"

const failed = "registry lookup failed for 3 of 90 MC numbers (first: 7, it answered 503)"
const shown_failed = failed.replace("registry", "Registry")

const faults: ReadonlyArray<readonly [name: string, answer: Answer, title: string, text: string]> =
  [
    ["a 502", refusing(502, failed), "Some lookups failed (502)", shown_failed],
    ["a 503", refusing(503, "Busy."), "The server is busy (503)", "Busy. Wait a moment"],
    ["a 429", refusing(429, "Too many."), "The server is busy (429)", "Wait a moment"],
    ["a 500", refusing(500, "Broken."), "The search failed (500)", "server's log"],
    ["a 406", refusing(406, "No form."), "The search is invalid (406)", "No form."],
    [
      "a page of a proxy",
      (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Hi</p>"),
      "Unexpected response",
      "proxy",
    ],
    [
      "lines that are none",
      (response, range) => {
        begun(response, range)
        response.end("null\n")
      },
      "Unexpected response",
      "proxy",
    ],
    ["no answer", (response) => response.destroy(), "The server cannot be reached", "npm start"],
  ]

export const describeCarrierFaults = (world: () => CarrierWorld) =>
  describe("a search that fails", () => {
    it.each(faults)("by %s says so, and what to do", async (_, answer, title, text) => {
      const { served } = world()
      served.answer = answer
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchFor(page, "1", "90")
      const notice = page.getByRole("alert").filter({ has: page.locator("h2") })
      await notice.waitFor()
      expect(await notice.locator("h2").textContent()).toContain(title)
      expect(await notice.textContent()).toContain(text)
      expect(await page.locator(".result").isVisible()).toBe(false)
      served.answer = answering(someNames)
      await notice.getByRole("button", { name: "Search again" }).click()
      await expect.poll(() => headlineOf(page)).toBe("45 carriers in MC 1 to 90")
      expect(await page.locator(".problem").count()).toBe(0)
      await leave(view)
    })

    it("after carriers came keeps them, and says that they are not all", async () => {
      const { served } = world()
      served.answer = (response, range) => {
        begun(response, range)
        response.write(row(3, "Kept LLC") + line({ progress: { done: 6, total: 90, found: 1 } }))
        response.end(line({ error: failed }))
      }
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchFor(page, "1", "90")
      await page.locator(".problem").waitFor()
      expect(await page.locator(".problem").textContent()).toContain(shown_failed)
      expect(await headlineOf(page)).toBe("1 carrier so far in MC 1 to 90")
      expect(await page.locator(".words").textContent()).toContain("Stopped after 6 of 90 numbers")
      await page.getByRole("button", { name: "Download partial CSV" }).waitFor()
      await picture(page, "carriers-desktop-failed", false)
      await leave(view)
    })

    it("by a connection that is cut says that the answer broke off", async () => {
      const { served } = world()
      const cut: Array<() => void> = []
      served.answer = (response, range) => {
        begun(response, range)
        response.write(row(3, "Kept LLC"))
        cut.push(() => response.destroy())
      }
      const view = await lookAtCarriers(world())
      await searchFor(view.page, "1", "90")
      // A browser discards undelivered data when a connection breaks.
      await view.page.getByText("Kept LLC").waitFor()
      for (const end of cut) end()
      await view.page.getByRole("heading", { name: "The response was cut off" }).waitFor()
      expect(await view.page.getByText("Kept LLC").isVisible()).toBe(true)
      await leave(view)
    })

    it("by an answer that ends without its last line says so too", async () => {
      const { served } = world()
      served.answer = (response, range) => {
        begun(response, range)
        response.end(row(3, "Kept LLC"))
      }
      const view = await lookAtCarriers(world())
      await searchFor(view.page, "1", "90")
      await view.page.getByRole("heading", { name: "The response was cut off" }).waitFor()
      const words = await view.page.locator(".words").textContent()
      expect(words).toContain("Stopped after 3 of 90 numbers")
      await leave(view)
    })

    it("with nothing to find says that nothing is wrong", async () => {
      world().served.answer = answering(() => undefined)
      const view = await lookAtCarriers(world())
      const { page } = view
      await searchFor(page, "500", "600")
      await expect.poll(() => headlineOf(page)).toBe("No carriers in MC 500 to 600")
      expect(await page.locator(".result .hint").textContent()).toContain(
        "All numbers were looked up",
      )
      expect(await page.locator(".found").isVisible()).toBe(false)
      expect(await page.getByRole("button", { name: /Download/ }).count()).toBe(0)
      await picture(page, "carriers-desktop-empty", false)
      await leave(view)
    })
  })
