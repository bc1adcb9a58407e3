/** The plant disease page without a prediction: its messages. */
import { describe, expect, it } from "vitest"
import { leave } from "../view.ts"
import { choose, lookAtPlants, type PlantWorld } from "./look.ts"
import { blighted, json, type PlantAnswer, refusing } from "./served.ts"

const faults: ReadonlyArray<readonly [number, error: string, title: string, advice: string]> = [
  [400, "the form has two files", "The request is invalid (400)", "Choose one JPEG or PNG"],
  [413, "50 megapixels at most", "The image is too large (413)", "Reduce its size"],
  [415, "it is a GIF", "Unsupported file type (415)", "Save the image in one of these formats"],
  [422, "it ends too early", "The image cannot be read (422)", "damaged or incomplete"],
  [500, "the network failed", "Prediction failed (500)", "server's log"],
  [503, "64 images wait already", "Prediction unavailable (503)", "Wait a moment"],
  [502, "no gateway", "The request failed (502)", "server's log"],
]

const strange: ReadonlyArray<readonly [name: string, answer: PlantAnswer, title: string]> = [
  ["no answer", (response) => response.destroy(), "The server cannot be reached"],
  ["a page of a proxy", (response) => response.end("<p>Hi</p>"), "Unexpected response"],
  ["no prediction", (response) => json(response, 200, {}), "Unexpected response"],
]

export const describePlantFaults = (world: () => PlantWorld) =>
  describe("without a prediction", () => {
    it.each(faults)("%i says so, and what to do", async (status, error, title, advice) => {
      const { served } = world()
      served.answer = refusing(status, error)
      const view = await lookAtPlants(world())
      const { page } = view
      await choose(page, "leaf.jpg", "other.jpg")
      await expect.poll(() => page.locator("h3.failure").count()).toBe(2)
      const first = page.locator(".verdict").first()
      expect(await first.locator("h3").textContent()).toContain(title)
      const failure = `${error.charAt(0).toUpperCase()}${error.slice(1)}. `
      expect(await first.locator("p").textContent()).toContain(failure)
      expect(await first.locator("p").textContent()).toContain(advice)
      served.answer = blighted
      const again = first.getByRole("button", { name: "Retry" })
      // Retrying the same file would fail again.
      const is_of_file = [413, 415, 422].includes(status)
      expect(await again.count()).toBe(is_of_file ? 0 : 1)
      if (is_of_file) return await leave(view)
      await again.click()
      await first.getByRole("heading", { name: "Tomato: Late blight" }).waitFor()
      expect(await page.locator("h3.failure").count()).toBe(1)
      await leave(view)
    })

    it.each(strange)("%s says so", async (_, answer, title) => {
      world().served.answer = answer
      const view = await lookAtPlants(world())
      await choose(view.page, "leaf.jpg")
      await view.page.getByRole("heading", { name: title }).waitFor()
      await leave(view)
    })

    it("of a file that is no picture shows none, and says what the server says", async () => {
      world().served.answer = refusing(415, "It is neither JPEG nor PNG.")
      const view = await lookAtPlants(world())
      const { page } = view
      const file = { name: "leaf.svg.jpg", mimeType: "image/jpeg", buffer: Buffer.from("<svg/>") }
      await page.getByLabel("Choose photos").setInputFiles(file)
      await page.getByText("No preview").waitFor()
      await page.getByText("It is neither JPEG nor PNG.").waitFor()
      await leave(view)
    })

    it("of a heat map says so, and asks again when it is wanted again", async () => {
      const { served } = world()
      const view = await lookAtPlants(world())
      const { page } = view
      await choose(page, "leaf.jpg")
      await page.locator(".bars").waitFor()
      const button = page.getByRole("button", { name: "Show heat map" })
      for (const [answer, text] of [
        [refusing(503, "64 images wait."), "64 images wait. Wait a moment"],
        [
          ((response) => json(response, 200, { prediction: "A" })) satisfies PlantAnswer,
          "Unexpected response",
        ],
        [
          ((response) =>
            json(response, 200, {
              prediction: "A",
              heatmap: "data:image/png;base64,!!",
            })) satisfies PlantAnswer,
          "No heat map",
        ],
      ] as const) {
        served.answer = answer
        await button.click()
        await expect.poll(() => page.locator(".explain .failure").textContent()).toContain(text)
      }
      served.answer = blighted
      await button.click()
      await page.locator("[aria-pressed=true]").waitFor()
      expect(await page.locator(".explain .failure").textContent()).toBe("")
      await leave(view)
    })
  })
