/** The plant disease page in a real Chromium, from the served files. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { buildIfNeeded, filesOf, sizeOf } from "../world/web/built.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"
import { describePlantFaults } from "../world/web/plants/faults.ts"
import { describePlantLook } from "../world/web/plants/look.ts"
import { describePlantPhotos } from "../world/web/plants/photos.ts"
import { blighted, type PlantServed, real_model, servePlants } from "../world/web/plants/served.ts"

/** As for the other pages with a form and a result. Source: issue 6, point 4. */
const page_bytes_max = 40_000

buildIfNeeded()

it("weighs less than 40 kB compressed, all its files together", () => {
  const sizes = filesOf("plants.html").map(sizeOf)
  expect(sizes.length).toBeGreaterThan(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(page_bytes_max)
})

describeWithChromium("the page of plant disease prediction", () => {
  let served: PlantServed
  let browser: Browser
  let close = () => Promise.resolve()

  beforeAll(async () => {
    served = await servePlants()
    const launched = await launch()
    browser = launched.browser
    close = launched.close
  })
  beforeEach(() => {
    served.model = real_model
    served.answer = blighted
    served.requests.length = 0
    served.at_once = 0
  })
  afterAll(async () => {
    await close()
    await served.close()
  })

  const world = () => ({ browser, served })
  describePlantLook(world)
  describePlantPhotos(world)
  describePlantFaults(world)
})
