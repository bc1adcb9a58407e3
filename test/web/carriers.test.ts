/** The carrier search page in a real Chromium, from the served files. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { buildIfNeeded, filesOf, sizeOf } from "../world/web/built.ts"
import { describeCarrierFaults } from "../world/web/carriers/faults.ts"
import { describeCarrierForm } from "../world/web/carriers/form.ts"
import { describeCarrierLook } from "../world/web/carriers/look.ts"
import { describeCarrierRun } from "../world/web/carriers/run.ts"
import type { CarrierServed } from "../world/web/carriers/served.ts"
import { answering, serveCarriers, someNames, sources } from "../world/web/carriers/served.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"

/** Maximum total size, compressed. Source: issue 6, point 4. */
const page_bytes_max = 40_000

buildIfNeeded()

it("weighs less than 40 kB compressed, all its files together", () => {
  const sizes = filesOf("carriers.html").map(sizeOf)
  expect(sizes.length).toBeGreaterThan(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(page_bytes_max)
})

describeWithChromium("the page of carrier search", () => {
  let served: CarrierServed
  let browser: Browser
  let close = () => Promise.resolve()

  beforeAll(async () => {
    served = await serveCarriers()
    const launched = await launch()
    browser = launched.browser
    close = launched.close
  })
  beforeEach(() => {
    served.source = sources.mirror
    served.spare = undefined
    served.answer = answering(someNames)
    served.requests.length = 0
    served.hung_up = 0
  })
  afterAll(async () => {
    await close()
    await served.close()
  })

  const world = () => ({ browser, served })
  describeCarrierLook(world)
  describeCarrierForm(world)
  describeCarrierRun(world)
  describeCarrierFaults(world)
})
