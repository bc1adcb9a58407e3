/** The console's messages for requests that are rejected, not found, or interrupted. */
import { expect, it } from "vitest"
import { leave, look } from "../view.ts"
import { type ConsoleWorld, enter, go, lookAtConsole, places } from "./look.ts"
import { token } from "./served.ts"

export const describeConsoleFaults = (world: () => ConsoleWorld) => {
  it("requires a token, reports a wrong one, and keeps it in the tab only", async () => {
    const { browser, served } = world()
    const view = await look(browser, served, { path: "/console", hash: "#workers" })
    const { page } = view
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    expect(await page.locator("#sign-in-error").textContent()).toBe("")
    expect(await page.locator("#views").isVisible()).toBe(false)
    await enter(page, "another")
    await expect
      .poll(() => page.locator("#sign-in-error").textContent())
      .toContain("The token is not valid")
    await enter(page)
    await page.locator(".sheet.workers").waitFor()
    expect(page.url()).not.toContain(token)
    expect(served.requests.filter(({ url }) => url.includes(token))).toEqual([])
    expect(await page.evaluate(() => JSON.stringify(Object.entries(localStorage)))).not.toContain(
      token,
    )
    await page.reload()
    await page.locator(".sheet.workers").waitFor()
    const other = await page.context().newPage()
    await other.goto(`${served.origin}/console`)
    await other.getByRole("heading", { name: "Sign in" }).waitFor()
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    await leave(view)
  })

  it("asks for none where the server wants none", async () => {
    const { browser, served } = world()
    served.is_open = true
    const view = await look(browser, served, { path: "/console", wait: ".card.log" })
    expect(await view.page.getByRole("button", { name: "Sign out" }).count()).toBe(0)
    await leave(view)
  })

  it("asks again for a token that was revoked meanwhile", async () => {
    const { served } = world()
    const view = await lookAtConsole(world(), { hash: "#workers" })
    const { page } = view
    served.answers.set("/v1/admin/workers", 401)
    await page.clock.runFor(5000)
    await expect
      .poll(() => page.locator("#sign-in-error").textContent())
      .toContain("expired or was revoked")
    await leave(view)
  })

  it("says in each view what this token may not see, with what gives one that may", async () => {
    const { served } = world()
    for (const path of served.answers.keys()) {
      if (path !== "/v1/") served.answers.set(path, 403)
    }
    served.stream_status = 403
    const view = await lookAtConsole(world(), { hash: "#workers" })
    const { page } = view
    for (const [name, hash] of places.slice(1)) {
      await go(page, hash, ".problem")
      const text = (await page.locator(".problem").first().textContent()) ?? ""
      expect([name, text]).toEqual([name, expect.stringContaining("Access denied (403)")])
      expect([name, text]).toEqual([name, expect.stringContaining("token issue --name console")])
      expect([name, await page.locator(".empty").count()]).toEqual([name, 0])
    }
    await go(page, "#overview", ".services .card")
    const figures = await page.locator(".services .figures").first().textContent()
    expect(figures).toContain("access denied")
    expect(await page.locator("#header .status").textContent()).toContain("No live events")
    await leave(view)
  })

  it("draws the ring for a token of its state alone, and marks the missing values", async () => {
    const { served } = world()
    served.answers.set("/v1/cluster/metrics", 403)
    const view = await lookAtConsole(world(), { hash: "#ring" })
    const { page } = view
    await page.locator(".slice").first().waitFor()
    expect(await page.locator(".ring").textContent()).toContain("cluster:admin")
    expect(await page.locator("thead").textContent()).not.toContain("Too few copies")
    await leave(view)
  })

  it("shows all where the server allows smaller pages than it asks for", async () => {
    const { served } = world()
    served.limit_max = 40
    const view = await lookAtConsole(world(), { hash: "#workers" })
    const { page } = view
    await page.locator(".sheet.workers tbody tr").first().waitFor()
    await go(page, "#jobs", ".sheet.jobs tbody tr")
    // The console needs three pages of 40 for its 100 rows.
    expect(await page.locator(".sheet.jobs tbody tr").count()).toBe(120)
    await page.getByRole("button", { name: "Older jobs" }).click()
    await expect.poll(() => page.locator(".sheet.jobs tbody tr").count()).toBe(123)
    await leave(view)
  })

  it("teaches where there is nothing yet", async () => {
    const { served } = world()
    const none = { pagination: { next_marker: null } }
    for (const noun of ["jobs", "workers", "rollouts", "coverage", "targets"]) {
      served.answers.set(`/v1/admin/${noun}`, { [noun]: [], ...none })
    }
    served.events.length = 0
    served.answers.set("/v1/cluster/metrics", { ring_version: 0, nodes: [], under_replicated: 0 })
    const view = await lookAtConsole(world(), { hash: "#jobs" })
    const { page } = view
    for (const [hash, title] of [
      ["#jobs", "No jobs"],
      ["#workers", "No workers"],
      ["#protection", "No shares"],
      ["#ring", "No nodes"],
      ["#audit", "No events"],
      ["#overview", "The log is empty"],
    ] as const) {
      await go(page, hash, `.empty h2:text-is("${title}")`)
    }
    await leave(view)
  })

  it("connects again when the stream of events is cut, and goes on where it was", async () => {
    const { served } = world()
    const view = await lookAtConsole(world(), { hash: "#jobs" })
    const { page } = view
    await page.locator("#header .standing.live").waitFor()
    const questions = () =>
      served.requests.filter(({ url }) => url.startsWith("/v1/admin/jobs")).length
    const before = questions()
    served.tell("job_started")
    await expect
      .poll(async () => {
        await page.clock.runFor(100)
        return questions()
      })
      .toBeGreaterThan(before)
    served.cut()
    await page.locator("#header .standing.failing").waitFor()
    await page.clock.runFor(1000)
    await page.locator("#header .standing.live").waitFor()
    const streams = served.requests.filter(({ url }) => url.startsWith("/v1/events"))
    expect(streams.map(({ is_known }) => is_known)).toEqual([true, true])
    expect(streams[0]?.last_id).toBe(undefined)
    expect(streams[1]?.last_id).toMatch(/^\d+$/)
    await leave(view)
  })

  it("executes nothing and shows no markup in names", async () => {
    const { served } = world()
    for (const [path, body] of served.answers) {
      if (typeof body === "object") served.answers.set(path, JSON.parse(poisoned(body)))
      if (typeof body === "function") {
        served.answers.set(path, (query) => JSON.parse(poisoned(body(query))))
      }
    }
    for (const rows of [served.jobs, served.events, served.past]) {
      rows.splice(0, rows.length, ...JSON.parse(poisoned(rows)))
    }
    const view = await lookAtConsole(world())
    const { page } = view
    let texts = ""
    for (const [, hash, wait] of places) {
      await go(page, hash, wait)
      texts += await page.locator("body").textContent()
      expect(await page.locator("img[src=x], [onerror]").count()).toBe(0)
      expect(await page.evaluate(() => Reflect.get(window, "struck"))).toBe(undefined)
    }
    expect(texts.split("<img src=x").length).toBeGreaterThan(10)
    await go(page, "#workers", ".sheet.workers")
    await page
      .getByRole("button", { name: /^Drain / })
      .first()
      .click()
    expect(await page.locator("dialog h2").textContent()).toContain("<img src=x")
    expect(await page.locator("img[src=x], [onerror]").count()).toBe(0)
    await leave(view)
  })
}

/** Fields that a tenant, a worker or a name server may control. */
const named = new Set(["name", "hostname", "bucket", "reason", "detail", "image_version", "actor"])
const struck = `<img src=x onerror="window.struck = 1"><script>window.struck = 1</script>`

/** The value as JSON, with markup in each of these fields. */
const poisoned = (value: unknown) =>
  JSON.stringify(value, (key, one: unknown) =>
    named.has(key) && typeof one === "string" ? `${one}${struck}` : one,
  )
