/** Behaviour of the console's views: progress, filters, paging, the ring, time travel. */
import { describe, expect, it } from "vitest"
import { leave } from "../view.ts"
import { running, uuid } from "./canned.ts"
import { type ConsoleWorld, go, job_past, lookAtConsole } from "./look.ts"

const describeJobs = (world: () => ConsoleWorld) =>
  describe("jobs", () => {
    it("show progress as it is, and an event at once", async () => {
      const { served } = world()
      const view = await lookAtConsole(world(), { hash: "#jobs" })
      const { page } = view
      const first = page.locator(".sheet.jobs tbody tr").first()
      await expect.poll(() => first.textContent()).toContain("42% \u00b7 401 MiB of 954 MiB")
      served.jobs[0] = { ...running, progress: 77 }
      await page.clock.runFor(2000)
      await expect.poll(() => first.textContent()).toContain("77%")
      await page.locator("#header .standing.live").waitFor()
      served.jobs[0] = { ...running, state: "available", finished_at: running.updated_at }
      served.tell("job_completed")
      // Sooner than the next poll.
      await expect
        .poll(async () => {
          await page.clock.runFor(100)
          return first.textContent()
        })
        .toContain("Available")
      await leave(view)
    })

    it("are narrowed by the address and by the form, and paged", async () => {
      const { served } = world()
      const view = await lookAtConsole(world(), { hash: "#jobs?state=error" })
      const { page } = view
      const rows = page.locator(".sheet.jobs tbody tr")
      await expect.poll(() => rows.count()).toBe(1)
      expect(await rows.textContent()).toContain("read_write: no such bucket.")
      await page.getByLabel("State").selectOption("")
      await expect.poll(() => rows.count()).toBe(100)
      expect(new URL(page.url()).hash).toBe("#jobs")
      await page.getByRole("button", { name: "Older jobs" }).click()
      await expect.poll(() => rows.count()).toBe(123)
      await page.getByLabel("Type").selectOption("target_enroll")
      await expect.poll(() => rows.count()).toBe(1)
      await page.getByLabel("Project").fill(uuid(1))
      await page.getByRole("button", { name: "Filter" }).click()
      await page.getByRole("heading", { name: "No matching jobs" }).waitFor()
      const last = served.requests.findLast(({ url }) => url.startsWith("/v1/admin/jobs?"))
      expect(last?.url).toContain(`job_type=target_enroll&project_id=${uuid(1)}`)
      await leave(view)
    })

    it("show the filter in their form, also after going back", async () => {
      const view = await lookAtConsole(world(), { hash: "#jobs" })
      const { page } = view
      const [state, project] = [page.getByLabel("State"), page.getByLabel("Project")]
      await state.selectOption("error")
      await expect.poll(() => page.locator(".sheet.jobs tbody tr").count()).toBe(1)
      await state.selectOption("queued")
      await project.fill(uuid(1))
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "No matching jobs" }).waitFor()
      await project.fill("not sent yet")
      await page.clock.runFor(15_000)
      expect(await project.inputValue()).toBe("not sent yet")
      await page.goBack()
      await expect.poll(() => project.inputValue()).toBe("")
      await page.goBack()
      await expect.poll(() => state.inputValue()).toBe("error")
      await leave(view)
    })

    it("one of them shows its steps, and the duration of each", async () => {
      const view = await lookAtConsole(world(), { hash: `#jobs?job=${uuid(9)}` })
      const { page } = view
      await page.locator(".way li").first().waitFor()
      expect(await page.locator(".way li").allTextContents()).toEqual([
        "Queued5 s",
        "Provisioning network2 s",
        "Provisioning source1 s",
        "Error20 Nov 2026, 22:26:58.000 UTC",
      ])
      expect(await page.locator(".happened a").allTextContents()).toEqual([
        "JobQueued",
        "JobAssigned",
        "JobStarted",
        "JobAdvanced",
        "JobFailed",
      ])
      await page.getByRole("link", { name: "View history" }).click()
      await page.locator(".chart .state.lit").waitFor()
      await leave(view)
    })
  })

const describeTimeline = (world: () => ConsoleWorld) =>
  describe("the timeline", () => {
    it("is by day, paged, and goes on at the head", async () => {
      const { served } = world()
      const view = await lookAtConsole(world(), { hash: "#audit" })
      const { page } = view
      const events = page.locator(".event")
      await expect.poll(() => events.count()).toBe(100)
      expect(await page.locator(".day h2").allTextContents()).toEqual([
        "20 Nov 2026",
        "19 Nov 2026",
      ])
      await page.getByRole("button", { name: "Older events" }).click()
      await expect.poll(() => events.count()).toBe(200)
      await page.getByRole("button", { name: "Older events" }).click()
      await expect.poll(() => events.count()).toBe(230)
      expect(await page.getByRole("button", { name: "Older events" }).count()).toBe(0)
      const [newest] = served.events
      if (newest === undefined) throw new Error("no event")
      served.events.unshift({ ...newest, position: 1001, type: "JobRetried" })
      await page.clock.runFor(2000)
      await expect.poll(() => events.first().textContent()).toContain("JobRetried")
      expect(await events.count()).toBe(231)
      await leave(view)
    })

    it("is filtered by keys alone, and its form says what its address does", async () => {
      const view = await lookAtConsole(world(), { hash: "#audit" })
      const { page } = view
      const focused = () => page.evaluate(() => document.activeElement?.id)
      const service = page.getByLabel("Service")
      await service.focus()
      await page.keyboard.press("ArrowDown")
      await page.keyboard.press("ArrowDown")
      await expect.poll(() => new URL(page.url()).hash).toBe("#audit?service=share-protection")
      expect(await focused()).toBe("f-service")
      await page.getByLabel("Type").fill("JobFailed")
      await page.keyboard.press("Enter")
      await expect.poll(() => new URL(page.url()).hash).toContain("&type=JobFailed")
      expect(await focused()).toBe("f-type")
      await page.goBack()
      await expect.poll(() => page.getByLabel("Type").inputValue()).toBe("")
      expect(await service.inputValue()).toBe("share-protection")
      await leave(view)
    })

    it("opens an event in full, and narrows to its request", async () => {
      const view = await lookAtConsole(world(), { hash: "#audit?type=JobFailed" })
      const { page } = view
      await expect.poll(() => page.locator(".event").count()).toBe(46)
      await page.getByRole("button", { name: "JobFailed" }).first().click()
      expect(await page.locator(".event-detail pre").textContent()).toContain('"fence": 0')
      await page.getByRole("link", { name: "request-1000" }).click()
      await expect.poll(() => page.locator(".event").count()).toBe(1)
      expect(new URL(page.url()).hash).toBe("#audit?request_id=request-1000")
      await page.getByLabel("Type").fill("Nothing")
      await page.getByRole("button", { name: "Filter" }).click()
      await page.getByRole("heading", { name: "No matching events" }).waitFor()
      await leave(view)
    })
  })

const describePast = (world: () => ConsoleWorld) =>
  describe("time travel", () => {
    it("goes through a past by arrow keys, the state and the way there lit", async () => {
      const view = await lookAtConsole(world(), { hash: job_past })
      const { page } = view
      const lit = () => page.locator(".chart .state.lit .name").allTextContents()
      const ways = () => page.locator(".chart .event.lit").allTextContents()
      await page.locator(".chart .state.lit").waitFor()
      expect([await lit(), await ways()]).toEqual([["error"], ["JobFailed"]])
      const slider = page.getByRole("slider", { name: "Commit" })
      expect(await slider.getAttribute("aria-valuetext")).toMatch(
        /^Commit 5 of 5: JobFailed, 20 Nov/,
      )
      const changed = page.locator(".fields tr.changed")
      expect(await changed.locator("th").allTextContents()).toEqual([
        "State",
        "error.code",
        "error.detail",
        "error",
      ])
      await slider.focus()
      await page.keyboard.press("ArrowLeft")
      expect([await lit(), await ways()]).toEqual([["provisioning_source"], ["JobAdvanced"]])
      await page.keyboard.press("Home")
      expect([await lit(), await ways()]).toEqual([["queued"], ["JobQueued"]])
      expect(await page.locator(".causing-event .pairs").textContent()).toContain("request-10")
      expect(await changed.count()).toBe(6)
      await page.getByRole("button", { name: "Next", exact: true }).click()
      expect(await ways()).toEqual(["JobAssigned"])
      const ins = await page.locator(".fields ins").allTextContents()
      expect(ins).toEqual([`"${uuid(600)}"`, "3"])
      expect(new URL(page.url()).hash).toBe(`${job_past}&at=12`)
      await leave(view)
    })

    it("begins at the commit that the address names, and follows what comes", async () => {
      const { served } = world()
      const view = await lookAtConsole(world(), { hash: `${job_past}&at=16` })
      const { page } = view
      await page.locator(".chart .state.lit").waitFor()
      const output = page.locator(".slider output")
      expect(await output.textContent()).toBe("Commit 3 of 5")
      const last = served.past.at(-1)
      if (last === undefined) throw new Error("no past")
      const retried = { type: "JobRetried", attempt: 2 }
      served.past.push({
        ...last,
        position: 30,
        events: [retried],
        snapshot: { ...last.snapshot, value: "queued" },
      })
      await page.clock.runFor(3000)
      await expect.poll(() => output.textContent()).toBe("Commit 3 of 6")
      await page.getByRole("button", { name: "Last", exact: true }).click()
      expect(await page.locator(".chart .event.lit").allTextContents()).toEqual(["JobRetried"])
      await leave(view)
    })

    it("finds the resource of an id, and reports an unknown or ambiguous one", async () => {
      const { served } = world()
      const view = await lookAtConsole(world(), { hash: "#past" })
      const { page } = view
      await page.getByRole("heading", { name: "Find a resource" }).waitFor()
      await page.getByLabel("Id, service.aggregate or service.aggregate.id").fill(uuid(9))
      await page.getByRole("button", { name: "Find" }).click()
      await page.locator(".chart .state.lit").waitFor()
      expect(await page.locator(".whose").textContent()).toBe(`share-protection.job.${uuid(9)}`)
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Find")
      await page.getByLabel("Id, service.aggregate or service.aggregate.id").fill("nobody")
      await page.getByRole("button", { name: "Find" }).click()
      await page.getByRole("heading", { name: "No match" }).waitFor()
      const [newest] = served.events
      if (newest === undefined) throw new Error("no event")
      served.events.unshift({ ...newest, position: 1001, id: uuid(10), subject: uuid(10) })
      await page
        .getByLabel("Id, service.aggregate or service.aggregate.id")
        .fill("share-protection.job")
      await page.getByRole("button", { name: "Find" }).click()
      await page.locator(".card li").nth(1).waitFor()
      expect(await page.locator(".card li").allTextContents()).toEqual([
        `share-protection.job.${uuid(10)}`,
        `share-protection.job.${uuid(9)}`,
      ])
      // There are 231 events, so older ones may belong to other resources.
      expect(await page.locator(".card .note").textContent()).toContain("the newest 200 events")
      await leave(view)
    })
  })

export const describeConsoleViews = (world: () => ConsoleWorld) => {
  describeJobs(world)
  describeTimeline(world)
  describePast(world)

  it("the ring shows seven nodes, their states, and what has to be made again", async () => {
    const view = await lookAtConsole(world(), { hash: "#ring" })
    const { page } = view
    await page.locator(".slice").first().waitFor()
    expect(await page.locator(".slice").count()).toBe(7)
    expect(await page.locator(".slice.bad title").textContent()).toContain("node-6, offline")
    expect(await page.locator(".ring .figures").textContent()).toContain(
      "Blobs with too few copies17",
    )
    await leave(view)
  })

  it("the overview says first what needs somebody, and where that is", async () => {
    const view = await lookAtConsole(world())
    const { page } = view
    const alerts = page.locator(".attention a")
    expect(await alerts.allTextContents()).toEqual([
      "plant-disease is not ready",
      "Node node-6 is offline",
      "17 blobs with too few copies",
      "The rollout of agent-2 halted",
      "1 job failed in the last 24 hours",
      `Restore test of share ${"\u2026"}0000000702 failed`,
      "The log is 75% full",
      "Node node-7 is nearly full",
      "Worker worker-604 died 30 min ago",
      "1 share without protection",
      "The read model of blob-storage is behind",
    ])
    await page.getByRole("link", { name: "1 job failed in the last 24 hours" }).click()
    await expect.poll(() => page.locator(".sheet.jobs tbody tr").count()).toBe(1)
    await go(page, "#overview", ".card.log")
    const carriers = page.locator(".services .card").nth(3)
    expect(await carriers.textContent()).toContain("Disabled on this server")
    await leave(view)
  })
}
