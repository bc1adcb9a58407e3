/** The console's actions: each asks for confirmation, runs once, and reports its result. */
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { serious } from "../axe.ts"
import { leave, overflowOf, picture } from "../view.ts"
import { past, running, uuid } from "./canned.ts"
import { type ConsoleWorld, lookAtConsole } from "./look.ts"

const cancel_path = `/v1/admin/jobs/${uuid(9)}/cancel`
const job = `#jobs?job=${uuid(9)}`

/** Finds a button by its label on the whole page. */
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name })
const dialog = (page: Page) => page.getByRole("dialog")
const open = async (page: Page, name: RegExp) => {
  await button(page, name).click()
  await dialog(page).waitFor()
}
const confirm = (page: Page, word: string) =>
  dialog(page)
    .getByRole("button", { name: `Yes, ${word.toLowerCase()}` })
    .click()

export const describeConsoleActions = (world: () => ConsoleWorld) => {
  const posted = () => world().served.requests.filter(({ method }) => method === "POST")

  describe("an action", () => {
    it("is done when it was asked for twice, once, and shows at once", async () => {
      const { served } = world()
      served.answers.set(cancel_path, () => {
        served.jobs[0] = { ...running, state: "error", finished_at: running.updated_at }
        return served.jobs[0]
      })
      const view = await lookAtConsole(world(), { hash: job })
      const { page } = view
      await open(page, /^Cancel Backup/)
      await dialog(page).getByRole("button", { name: "Back" }).click()
      await dialog(page).waitFor({ state: "detached" })
      await open(page, /^Cancel Backup/)
      await page.keyboard.press("Escape")
      await dialog(page).waitFor({ state: "detached" })
      expect(posted()).toEqual([])
      await open(page, /^Cancel Backup/)
      await confirm(page, "Cancel")
      await dialog(page).waitFor({ state: "detached" })
      await button(page, /^Retry Backup/).waitFor()
      expect(posted()).toMatchObject([{ url: cancel_path, is_known: true }])
      expect(posted()[0]?.key).toMatch(/^[\da-f]{32}$/)
      await expect
        .poll(() => page.locator("#announcement").textContent())
        .toMatch(/^Cancel Backup .*: accepted\.$/)
      await leave(view)
    })

    it("that is refused says why, and is the same wish when it is tried again", async () => {
      const { served } = world()
      served.answers.set(cancel_path, 409)
      const view = await lookAtConsole(world(), { hash: job })
      const { page } = view
      await open(page, /^Cancel Backup/)
      await confirm(page, "Cancel")
      const alert = dialog(page).getByRole("alert")
      await expect
        .poll(() => alert.textContent())
        .toContain("The current state does not allow this (409). The server said 409.")
      served.answers.set(cancel_path, 403)
      await confirm(page, "Cancel")
      await expect.poll(() => alert.textContent()).toContain("Action not allowed (403)")
      served.answers.set(cancel_path, {})
      await confirm(page, "Cancel")
      await dialog(page).waitFor({ state: "detached" })
      const keys = posted().map(({ key }) => key)
      expect([keys.length, new Set(keys).size]).toEqual([3, 1])
      await open(page, /^Cancel Backup/)
      await confirm(page, "Cancel")
      await dialog(page).waitFor({ state: "detached" })
      expect(new Set(posted().map(({ key }) => key)).size).toBe(2)
      await leave(view)
    })

    it("closes with its view, and stays open while that is redrawn", async () => {
      const view = await lookAtConsole(world(), { hash: job })
      const { page } = view
      await open(page, /^Cancel Backup/)
      world().served.tell("job_completed")
      await page.clock.runFor(5000)
      await expect.poll(() => dialog(page).count()).toBe(1)
      await page.evaluate(() => {
        location.hash = "#workers"
      })
      await dialog(page).waitFor({ state: "detached" })
      expect(posted()).toEqual([])
      await leave(view)
    })

    it("cannot be closed after it was sent, until the response arrives", async () => {
      world().served.answers.set(cancel_path, 503)
      const view = await lookAtConsole(world(), { hash: job })
      const { page } = view
      const sent = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      await page.route(`**${cancel_path}`, async (route) => {
        sent.resolve()
        await held.promise
        await route.continue()
      })
      await open(page, /^Cancel Backup/)
      await confirm(page, "Cancel")
      await sent.promise
      const leaving = dialog(page).getByRole("button", { name: "Back" })
      expect(await leaving.isDisabled()).toBe(true)
      await page.keyboard.press("Escape")
      expect(await dialog(page).count()).toBe(1)
      held.resolve()
      await expect
        .poll(() => dialog(page).getByRole("alert").textContent())
        .toBe(
          "Service unavailable (503). The server said 503. " +
            "Check the server's log, then try again.",
        )
      await leaving.click()
      await dialog(page).waitFor({ state: "detached" })
      await leave(view)
    })

    it("whose token is not known any more goes, and another is asked for", async () => {
      world().served.answers.set(cancel_path, 401)
      const view = await lookAtConsole(world(), { hash: job })
      const { page } = view
      await open(page, /^Cancel Backup/)
      await confirm(page, "Cancel")
      await page.getByRole("heading", { name: "Sign in" }).waitFor()
      expect(await dialog(page).count()).toBe(0)
      expect(await page.evaluate(() => document.activeElement?.id)).toBe("token")
      await leave(view)
    })

    it("is there where it can be: retry, drain, pause, resume, reconcile", async () => {
      const { served } = world()
      const failed = `/v1/admin/audit/share-protection/job/${uuid(7)}`
      served.answers.set(failed, { service: "", aggregate: "", id: uuid(7), commits: past })
      const view = await lookAtConsole(world(), { hash: `#jobs?job=${uuid(7)}` })
      const { page } = view
      const doing = async (hash: string, name: RegExp, word: string, path: string) => {
        await page.evaluate((to) => {
          location.hash = to
        }, hash)
        served.answers.set(path, {})
        await open(page, name)
        await confirm(page, word)
        await dialog(page).waitFor({ state: "detached" })
        expect(posted().at(-1)?.url).toBe(path)
      }
      const retry = `/v1/admin/jobs/${uuid(7)}/retry`
      await doing(`#jobs?job=${uuid(7)}`, /^Retry Target/, "Retry", retry)
      const drain = `/v1/admin/workers/${uuid(600)}/drain`
      await doing("#workers", /^Drain worker-600/, "Drain", drain)
      expect(await button(page, /^Drain /).count()).toBe(3)
      const scheduling = "/v1/admin/scheduling"
      await doing("#protection", /^Pause all/, "Pause", `${scheduling}/pause`)
      served.answers.set(scheduling, {
        paused: true,
        paused_at: running.updated_at,
        next_run: null,
      })
      await page.clock.runFor(60_000)
      await doing("#protection", /^Resume all/, "Resume", `${scheduling}/resume`)
      const trigger = "/v1/admin/reconciliation/trigger"
      await doing("#protection", /^Run a reconciliation/, "Run", trigger)
      await leave(view)
    })
  })

  for (const colorScheme of ["light", "dark"] as const) {
    it(`asks in a dialog that axe finds nothing serious in when ${colorScheme}`, async () => {
      world().served.jobs.length = 6
      world().served.answers.set(cancel_path, 409)
      const view = await lookAtConsole(world(), { hash: job, colorScheme, size: "phone" })
      const { page } = view
      await open(page, /^Cancel Backup/)
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Back")
      await confirm(page, "Cancel")
      await dialog(page).getByRole("alert").filter({ hasText: "409" }).waitFor()
      expect([await serious(page), await overflowOf(page)]).toEqual([[], 0])
      await picture(page, `console-phone-action-${colorScheme}`)
      await leave(view)
    })
  }
}
