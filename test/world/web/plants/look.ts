/** Appearance of the plant disease page: sizes, colours, the model, axe. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { serious } from "../axe.ts"
import { leave, look, overflowOf, picture, type Size, type View } from "../view.ts"
import { demo_model, type PlantServed, photo, refusing } from "./served.ts"

export interface PlantWorld {
  readonly browser: Browser
  readonly served: PlantServed
}

interface Looked extends BrowserContextOptions {
  readonly size?: Size
}

/** Opens the page and waits until it shows its model. */
export const lookAtPlants = async (
  { browser, served }: PlantWorld,
  options: Looked = {},
): Promise<View> => {
  const view = await look(browser, served, { path: "/plants", ...options })
  await view.page.locator(".source").waitFor()
  return view
}

export const choose = async (page: Page, ...names: string[]) => {
  const files = names.map(async (name) => {
    const kind = name.endsWith(".png") ? "png" : "jpeg"
    const [width, height] = kind === "png" ? [240, 320] : [320, 240]
    return { name, mimeType: `image/${kind}`, buffer: await photo(kind, width, height) }
  })
  await page.getByLabel("Choose photos").setInputFiles(await Promise.all(files))
}

const names = ["phone", "tablet", "desktop"] as const satisfies ReadonlyArray<Size>

export const describePlantLook = (world: () => PlantWorld) => {
  for (const size of names) {
    it(`shows predictions on a ${size}, without overflow`, async () => {
      const view = await lookAtPlants(world(), { size })
      const { page } = view
      await picture(page, `plants-${size}-first`)
      await choose(page, "leaf.jpg", "another leaf with quite a long name to it, IMG_20261120.png")
      await page.locator(".bars").nth(1).waitFor()
      expect(await overflowOf(page)).toBe(0)
      for (const place of await page.locator(".picture").all()) {
        const frame = await place.boundingBox()
        const leaf = await place.locator("canvas").first().boundingBox()
        // The whole leaf is visible: no part of its picture is outside the frame.
        expect(leaf?.height).toBeLessThanOrEqual(frame?.height ?? 0)
      }
      await picture(page, `plants-${size}-light`)
      await leave(view)
    })
  }

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing that axe finds serious when ${colorScheme}`, async () => {
      const { served } = world()
      served.model = demo_model
      const view = await lookAtPlants(world(), { colorScheme })
      const { page } = view
      expect(await serious(page)).toEqual([])
      await choose(page, "leaf.jpg")
      await page.getByRole("button", { name: "Show heat map" }).click()
      await page.locator("[aria-pressed=true]").waitFor()
      served.answer = refusing(415, "It is neither JPEG nor PNG.")
      await choose(page, "odd.png")
      await page.locator("h3.failure").waitFor()
      await page.locator("summary").click()
      expect(await serious(page)).toEqual([])
      await picture(page, `plants-desktop-${colorScheme}-states`)
      await leave(view)
    })
  }

  it("has one title, and headings in their order", async () => {
    const view = await lookAtPlants(world())
    await choose(view.page, "leaf.jpg")
    await view.page.locator(".bars").waitFor()
    const levels = await view.page.evaluate(() =>
      [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1])),
    )
    expect(levels).toEqual([1, 2, 2, 3])
    await leave(view)
  })

  describe("the model", () => {
    it("is shown with its form, size, hash and classes", async () => {
      const view = await lookAtPlants(world())
      const { page } = view
      const text = (await page.locator(".source").textContent()) ?? ""
      expect(text).toContain(
        "keras-h5 \u00b7 6 classes \u00b7 47,805,158 weights \u00b7 SHA-256 0123456789ab",
      )
      await page.locator("summary").click()
      expect(await page.locator(".classes li").allTextContents()).toEqual([
        "Apple: Apple scab",
        "Corn (maize): Common rust",
        "Pepper, bell: Bacterial spot",
        "Tomato: Late blight",
        "Tomato: Spider mites Two-spotted spider mite",
        "Tomato: healthy",
      ])
      expect(await page.locator(".badge.demo").count()).toBe(0)
      await leave(view)
    })

    it("that is the demo's has a warning that it was trained on drawn leaves only", async () => {
      const { served } = world()
      served.model = demo_model
      served.answer = (response) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end('{"prediction":"DemoOak___leaf_spot"}')
      const view = await lookAtPlants(world())
      const { page } = view
      const text = await page.locator(".source .remark").textContent()
      expect(text).toContain(
        "trained on drawn leaves only, so its predictions for photos are meaningless",
      )
      await choose(page, "leaf.jpg")
      await page.getByRole("heading", { name: "Demo Oak: leaf spot" }).waitFor()
      for (const place of ["#header", ".source", ".leaf h3"]) {
        expect([place, await page.locator(`${place} .badge.demo`).count()]).toEqual([place, 1])
      }
      expect(await page.locator(".bars").count()).toBe(0)
      await leave(view)
    })

    it("that is missing shows the reason, and appears without a reload", async () => {
      const { served } = world()
      served.model = undefined
      const view = await lookAtPlants(world())
      const { page } = view
      const failure = await page.locator(".source .failure").textContent()
      expect(failure).toContain("The model file is missing.")
      served.model = demo_model
      await page.clock.runFor(10_000)
      await page.locator(".source .standing.live").waitFor()
      await leave(view)
    })
  })
}
