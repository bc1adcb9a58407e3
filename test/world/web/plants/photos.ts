/** Photos that are chosen, dropped or pasted; their descriptions; and the heat map. */
import type { ServerResponse } from "node:http"
import { describe, expect, it } from "vitest"
import { leave, picture } from "../view.ts"
import { choose, lookAtPlants, type PlantWorld } from "./look.ts"
import { blighted, blightedBy, json, photo, turned } from "./served.ts"

/** Runs in the page: passes a photo as a drop or a paste would. */
const hand = ({ event, bytes }: { event: string; bytes: number[] }) => {
  const data = new DataTransfer()
  const type = "image/jpeg"
  data.items.add(new File([new Uint8Array(bytes)], `${event}.jpg`, { type }))
  const init = { bubbles: true, cancelable: true }
  const place = document.querySelector(".drop") ?? document.body
  if (event === "drop") place.dispatchEvent(new DragEvent(event, { ...init, dataTransfer: data }))
  else document.body.dispatchEvent(new ClipboardEvent(event, { ...init, clipboardData: data }))
}

/** Runs in the page: the colour in the middle of a picture, or `away` to the left and below. */
const middleOf = (canvas: Element, away = 0) => {
  if (!(canvas instanceof HTMLCanvasElement)) return undefined
  const { width, height } = canvas
  // Reads a copy, because the page's own canvas is not meant for reading.
  const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })
  copy?.drawImage(canvas, away - width / 2, -away - height / 2)
  const pixel = copy?.getImageData(0, 0, 1, 1).data
  return { width, height, red: pixel?.[0] ?? 0, green: pixel?.[1] ?? 0 }
}

export const describePlantPhotos = (world: () => PlantWorld) => {
  it("shows the class in words, its exact name, and the likeliest five", async () => {
    const { served } = world()
    const view = await lookAtPlants(world())
    const { page } = view
    await choose(page, "leaf.jpg")
    await page.getByRole("heading", { name: "Tomato: Late blight" }).waitFor()
    expect(await page.locator(".raw").textContent()).toBe("Tomato___Late_blight")
    expect(await page.locator(".bars li").allTextContents()).toEqual([
      "Tomato: Late blight93%",
      "Tomato: Spider mites Two-spotted spider mite5.1%",
      "Corn (maize): Common rust1.2%",
      "Pepper, bell: Bacterial spot0.5%",
      "Apple: Apple scab<0.1%",
    ])
    const bars = page.locator(".bars .value")
    const widths = await bars.evaluateAll((all) => all.map((one) => one.getAttribute("width")))
    expect(widths).toEqual(["93.12", "5.11", "1.20", "0.53", "0.04"])
    expect(served.requests).toEqual([
      { query: "?top_k=5", file_name: "leaf.jpg", type: "image/jpeg", fields: 1 },
    ])
    const spoken = page.locator("#announcement")
    expect(await spoken.textContent()).toBe("leaf.jpg: Tomato: Late blight, 93%.")
    await leave(view)
  })

  it("shows the photo, and where the network looks when that is wanted", async () => {
    const { served } = world()
    const view = await lookAtPlants(world())
    const { page } = view
    await choose(page, "leaf.jpg")
    const preview = page.getByRole("img", { name: "Preview of leaf.jpg" })
    await expect.poll(() => preview.evaluate(middleOf)).toMatchObject({ width: 320, height: 240 })
    expect((await preview.evaluate(middleOf))?.green).toBeGreaterThan(100)
    const button = page.getByRole("button", { name: "Show heat map" })
    await button.click()
    const map = page.getByRole("img", { name: /^Heat map of leaf.jpg/ })
    await map.waitFor()
    expect(await preview.isVisible()).toBe(false)
    expect(await map.evaluate(middleOf)).toMatchObject({ width: 224, height: 224, red: 240 })
    await button.click()
    await preview.waitFor()
    await button.click()
    await map.waitFor()
    const queries = served.requests.map(({ query }) => query)
    expect(queries).toEqual(["?top_k=5", "?explain=heatmap"])
    await leave(view)
  })

  describe("a photo that its camera has turned", () => {
    const upright = { width: 240, height: 320, is_green: true }
    const lying = { width: 320, height: 240, is_green: false }
    for (const kind of ["jpeg", "png"] as const) {
      for (const [as, auto_orient] of [
        ["upright, as the network sees it", true],
        ["in its stored orientation, once its map arrived", false],
      ] as const) {
        it(`is shown ${as} (${kind})`, async () => {
          const { served } = world()
          served.answer = blightedBy(auto_orient)
          const view = await lookAtPlants(world())
          const { page } = view
          const buffer = await turned(kind)
          const file = { name: `leaf.${kind}`, mimeType: `image/${kind}`, buffer }
          await page.getByLabel("Choose photos").setInputFiles(file)
          const preview = page.getByRole("img", { name: `Preview of leaf.${kind}` })
          const seen = async () => {
            const { red = 0, green = 0, ...size } = (await preview.evaluate(middleOf, 80)) ?? {}
            return { ...size, is_green: green > red }
          }
          await expect.poll(seen).toEqual(upright)
          const button = page.getByRole("button", { name: "Show heat map" })
          await button.click()
          await page.getByRole("img", { name: /^Heat map of leaf/ }).waitFor()
          await button.click()
          await preview.waitFor()
          await picture(page, `plants-turned-${kind}-${auto_orient}`)
          expect(await seen()).toEqual(auto_orient ? upright : lying)
          await leave(view)
        })
      }
    }
  })

  it("says that it is not sure where it is not", async () => {
    const { served } = world()
    const predictions = [
      { class: "A___b", probability: 0.41 },
      { class: "A___c", probability: 0.39 },
    ]
    served.answer = (response) => json(response, 200, { prediction: "A___b", predictions })
    const view = await lookAtPlants(world())
    await choose(view.page, "leaf.jpg")
    await view.page.getByText("Low confidence").waitFor()
    await leave(view)
  })

  it("asks for one after the other, in their order, and shows the newest first", async () => {
    const { served } = world()
    // Long enough for another response to arrive in between.
    served.answer = (response, request) => setTimeout(() => blighted(response, request), 50)
    const view = await lookAtPlants(world())
    const { page } = view
    await choose(page, "1.jpg", "2.png", "3.jpg")
    await page.locator(".bars").nth(2).waitFor()
    await choose(page, "4.jpg")
    await page.locator(".bars").nth(3).waitFor()
    expect(served.requests.map(({ file_name }) => file_name)).toEqual([
      "1.jpg",
      "2.png",
      "3.jpg",
      "4.jpg",
    ])
    expect(served.at_once).toBe(1)
    const names = await page.locator(".leaf .name").allTextContents()
    expect(names).toEqual(["4.jpg", "1.jpg", "2.png", "3.jpg"])
    expect(await page.locator("#result").textContent()).toBe("4 photos")
    await leave(view)
  })

  it("says which is under way and which waits", async () => {
    const { served } = world()
    const open: ServerResponse[] = []
    served.answer = (response) => open.push(response)
    const view = await lookAtPlants(world())
    const { page } = view
    await choose(page, "1.jpg", "2.jpg")
    const states = () => page.locator(".verdict").allTextContents()
    await expect.poll(states).toEqual(["Predicting\u2026", "Waiting\u2026"])
    await expect.poll(() => open.length).toBe(1)
    for (const response of open) json(response, 200, { prediction: "A___b" })
    await expect.poll(states).toEqual(["A: bA___b", "Predicting\u2026"])
    expect(await page.locator(".verdict").last().getAttribute("aria-busy")).toBe("true")
    await leave(view)
  })

  it("keeps sixty, and says what is left out", async () => {
    const { served } = world()
    served.answer = (response) => json(response, 200, { prediction: "A___b" })
    const view = await lookAtPlants(world())
    const { page } = view
    await page.locator("#announcement").evaluate((place) => {
      const heard: string[] = []
      Reflect.set(window, "heard", heard)
      new MutationObserver(() => heard.push(place.textContent ?? "")).observe(place, {
        childList: true,
      })
    })
    await choose(page, ...Array.from({ length: 62 }, (_, index) => `${index}.jpg`))
    await expect.poll(() => served.requests.length).toBe(60)
    expect(await page.locator(".leaf").count()).toBe(60)
    const heard: string[] = await page.evaluate(() => Reflect.get(window, "heard"))
    expect(heard[0]).toBe("60 photos are shown; 2 were skipped.")
    await leave(view)
  })

  describe("a photo", () => {
    for (const event of ["drop", "paste"] as const) {
      it(`comes in by ${event}`, async () => {
        const { served } = world()
        const view = await lookAtPlants(world())
        await view.page.evaluate(hand, { event, bytes: [...(await photo())] })
        await view.page.locator(".bars").waitFor()
        expect(served.requests.map(({ file_name }) => file_name)).toEqual([`${event}.jpg`])
        await leave(view)
      })
    }

    it("is taken with the camera on a phone, and nowhere else", async () => {
      const desktop = await lookAtPlants(world())
      expect(await desktop.page.getByText("Take a photo").isVisible()).toBe(false)
      await leave(desktop)
      const phone = await lookAtPlants(world(), { size: "phone", hasTouch: true, isMobile: true })
      expect(await phone.page.getByText("Take a photo").isVisible()).toBe(true)
      const input = phone.page.getByLabel("Take a photo")
      expect(await input.getAttribute("capture")).toBe("environment")
      await leave(phone)
    })

    it("is chosen by keys alone", async () => {
      const view = await lookAtPlants(world())
      const { page } = view
      // Keyboard events use another channel and may overtake the file chooser's interception. The
      // response of `evaluate` comes after the interception, so await it first.
      const chooser = page.waitForEvent("filechooser")
      for (let times = 0; times < 6; times++) await page.keyboard.press("Tab")
      const focused = await page.evaluate(() => document.activeElement?.getAttribute("accept"))
      expect(focused).toBe("image/jpeg,image/png")
      await page.keyboard.press("Space")
      expect((await chooser).isMultiple()).toBe(true)
      await leave(view)
    })
  })
}
