/** The operators' console in a real Chromium, from the served files. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { buildIfNeeded, filesOf, sizeOf } from "../world/web/built.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"
import { describeConsoleActions } from "../world/web/console/actions.ts"
import { describeConsoleFaults } from "../world/web/console/faults.ts"
import { describeConsoleLook } from "../world/web/console/look.ts"
import { type ConsoleServed, serveConsole } from "../world/web/console/served.ts"
import { describeConsoleViews } from "../world/web/console/views.ts"

/** Seven views together, less than a picture. */
const page_bytes_max = 40_000

buildIfNeeded()

it("weighs less than 40 kB compressed, all its files together", () => {
  const sizes = filesOf("operators.html").map(sizeOf)
  expect(sizes.length).toBeGreaterThan(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(page_bytes_max)
})

describeWithChromium("the console", () => {
  let served: ConsoleServed
  let browser: Browser
  let close = () => Promise.resolve()

  beforeAll(async () => {
    served = await serveConsole()
    const launched = await launch()
    browser = launched.browser
    close = launched.close
  })
  beforeEach(() => served.reset())
  afterAll(async () => {
    await close()
    await served.close()
  })

  const world = () => ({ browser, served })
  describeConsoleLook(world)
  describeConsoleViews(world)
  describeConsoleActions(world)
  describeConsoleFaults(world)
})
