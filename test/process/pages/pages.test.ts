/**
 * The pages of a running server as a user sees them: a subset of the services, and a real browser.
 */
import { expect, it } from "vitest"
import { minute_ms, pageServer } from "../../world/server/page-server.ts"
import { runVerb } from "../../world/server/server.ts"
import { describeWithChromium } from "../../world/web/chromium.ts"

const environment = { ALMANAC_SERVICES: '["carrier-search"]' }

describeWithChromium("the pages of a running server", () => {
  const { data_dir, newPage, server } = pageServer(environment)

  it("are those of its services alone", async () => {
    const headers = { accept: "text/html" }
    const [carriers, plants] = await Promise.all(
      ["/carriers", "/plants"].map((path) => fetch(new URL(path, server().url), { headers })),
    )
    expect([carriers?.status, plants?.status]).toEqual([200, 404])
    expect(await carriers?.text()).toContain('data-pages="/carriers /console /docs"')
  })

  it("lead to a search by what they say themselves", { timeout: 3 * minute_ms }, async () => {
    const { page, complaints } = await newPage()
    await page.goto(`${server().url}/carriers#start=100001&end=120000`)
    const command = page.locator(".command code").first()
    expect(await command.textContent()).toBe("npm run almanac -- carriers import --demo")
    const { code } = await runVerb(data_dir, ["carriers", "import", "--demo"], environment)
    expect(code).toBe(0)
    await page.locator(".source .badge.demo").waitFor()
    await page.getByRole("button", { name: "Search" }).click()
    const words = page.locator(".words")
    await expect.poll(() => words.textContent()).toMatch(/^20,000 numbers looked up in the mirror/)
    const answer = await fetch(new URL("/api/search?start=100001&end=120000", server().url))
    const { carriers, error } = await answer.json()
    expect([answer.status, error, carriers?.length > 100]).toEqual([200, undefined, true])
    const headline = await page.locator("#result").textContent()
    expect(headline).toBe(
      `${carriers.length.toLocaleString("en-US")} carriers in MC 100001 to 120000`,
    )
    const first = await page.locator(".found tbody tr").first().textContent()
    expect(first).toBe(`${carriers[0].mcNumber}${carriers[0].name}ACTIVECARRIER`)
    expect(carriers[0].name).toMatch(/^DEMO/)
    await page.close()
    expect(complaints.filter((text) => !text.includes("502"))).toEqual([])
  })
})
