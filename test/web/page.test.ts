/** The dashboard's page in a real Chromium, with the served files and canned responses. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { describeAccess } from "../world/web/access.ts"
import { buildIfNeeded, filesOf, namedIn, sizeOf } from "../world/web/built.ts"
import { bodiesOf, stores } from "../world/web/canned.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"
import { describeDrawer } from "../world/web/drawer.ts"
import { describeLook } from "../world/web/look.ts"
import { type Served, serve } from "../world/web/served.ts"
import { describeStates } from "../world/web/states.ts"

/** Maximum total size of the page, compressed. Source: issue 5, point 6. */
const page_bytes_max = 90_000

buildIfNeeded()

it("weighs less than 90 kB compressed, all its files together", () => {
  const sizes = filesOf("index.html").map(sizeOf)
  expect(sizes.length).toBeGreaterThan(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(page_bytes_max)
})

it("names each file by its content, and nothing of another's", () => {
  for (const page of ["index.html", "carriers.html", "plants.html"]) {
    const named = namedIn(page)
    expect(named.length).toBeGreaterThan(2)
    for (const path of named) {
      expect(path).toMatch(/^\/assets\/[a-z-]+-[\w-]{8}\.(js|css|svg)$/)
    }
  }
})

describeWithChromium("the page", () => {
  let served: Served
  let browser: Browser
  let close = () => Promise.resolve()
  const whole = bodiesOf(stores.whole)

  beforeAll(async () => {
    served = await serve(whole)
    const launched = await launch()
    browser = launched.browser
    close = launched.close
  })
  beforeEach(() => {
    served.bodies = whole
    served.failing = undefined
    served.token = undefined
    served.answered.length = 0
  })
  afterAll(async () => {
    await close()
    await served.close()
  })

  const world = () => ({ browser, served })
  describeLook(world)
  describeDrawer(world)
  describeStates(world)
  describeAccess(world)
})
