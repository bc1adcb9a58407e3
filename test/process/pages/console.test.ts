/** The console of a running server as an operator uses it, following docs/guide-console.md. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { commandsIn, guideText, walk } from "../../docs/guide.ts"
import { minute_ms, pageServer } from "../../world/server/page-server.ts"
import { newFolder } from "../../world/server/server.ts"
import { describeWithChromium } from "../../world/web/chromium.ts"

const environment = { ALMANAC_SERVICES: '["blob-storage", "share-protection"]' }

describeWithChromium("the console of a running server", () => {
  const { data_dir, newPage, server: running } = pageServer(environment)

  it("opens with the token of its guide, and follows the log", {
    timeout: 3 * minute_ms,
  }, async () => {
    const server = running()
    const { page, complaints } = await newPage()
    page.setDefaultTimeout(minute_ms)
    await page.goto(`${server.url}/console`)
    expect(await page.locator("#header").getAttribute("data-pages")).toBe("/console /docs")
    const command = (await page.locator(".command code").first().textContent()) ?? ""
    const [, verb = ""] = command.split("npm run almanac -- ")
    const guide = commandsIn(guideText("guide-console.md"))
    expect(guide[0]).toContain(`./almanac ${verb} `)
    const folder = newFolder()
    const env = { ALMANAC_DATA_DIR: data_dir, API: server.url, ...environment }
    const { code, output } = await walk(folder, guide, env)
    expect([code, output]).toEqual([0, expect.stringContaining("share-protection.job: 10 states")])
    const token = readFileSync(join(folder, "console-token"), "utf8").trim()
    await page.getByLabel("Token", { exact: true }).fill(token)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.locator(".card.log").waitFor()
    const figures = await page.locator(".services .card").first().textContent()
    expect(figures).toContain("Nodes active1 of 1")

    await page.getByRole("link", { name: "Audit", exact: true }).click()
    await page.locator(".event").first().waitFor()
    await fetch(`${server.url}/v1/blobs`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${server.credentials.blob.token}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ data: btoa("a blob to travel to") }),
    })
    const stored = page.getByRole("button", { name: "BlobStored" })
    await stored.waitFor()
    await stored.click()
    expect(await page.locator(".event-detail").textContent()).toContain("token:blob")

    await page.getByRole("link", { name: "Protection", exact: true }).click()
    for (const [word, now] of [
      ["Pause", "Paused"],
      ["Resume", "Running"],
    ] as const) {
      await page.getByRole("button", { name: `${word} all schedules` }).click()
      await page.getByRole("button", { name: `Yes, ${word.toLowerCase()}` }).click()
      await page.locator("section.card .standing", { hasText: now }).first().waitFor()
    }

    await page.getByRole("link", { name: "Blob ring", exact: true }).click()
    await page.locator(".slice.good").waitFor()
    await page.getByRole("link", { name: "View history" }).click()
    await page.locator(".chart .state.lit").waitFor()
    const standing = await page.locator(".chart .state.lit .name").textContent()
    expect(standing).toBe("formed")
    await page.getByRole("slider", { name: "Commit" }).press("Home")
    const lit = page.locator(".chart .event.lit")
    await expect.poll(() => lit.allTextContents()).toContain("RingConfigured")
    expect(await lit.allTextContents()).toContain("NodeJoined")
    expect(await page.locator(".fields tr.changed").count()).toBeGreaterThan(0)
    expect(page.url()).toContain("#past?of=blob-storage.cluster.almanac&at=")
    await page.close()
    // The first request has no token, and these services are disabled here.
    const known = /401|404/
    expect(complaints.filter((text) => !known.test(text))).toEqual([])
  })
})
