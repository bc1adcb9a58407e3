/** `almanac plant leaf` on the command line. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, describe, expect, it } from "vitest"
import { cleanUp, newFolder, runVerb } from "../world/server/server.ts"

afterAll(cleanUp)

const folder = newFolder()
const leaf = (name: string, ...more: ReadonlyArray<string>) =>
  runVerb(folder, ["plant", "leaf", "--out", join(folder, name), ...more])

describe("almanac plant leaf", () => {
  it("draws one as its file's ending says, the same for the same seed", async () => {
    for (const [name, format] of [
      ["leaf.jpg", "jpeg"],
      ["leaf.png", "png"],
    ] as const) {
      const { code, stdout } = await leaf(name, "--class", "DemoBlade___healthy")
      expect([code, stdout]).toEqual([0, `${join(folder, name)}: drew DemoBlade___healthy\n`])
      const head = await sharp(readFileSync(join(folder, name))).metadata()
      expect([head.format, head.width, head.height]).toEqual([format, 512, 512])
    }
    await leaf("same.png", "--class", "DemoBlade___healthy")
    await leaf("other.png", "--class", "DemoBlade___healthy", "--seed", "7")
    const [one, same, other] = ["leaf.png", "same.png", "other.png"].map((name) =>
      readFileSync(join(folder, name)),
    )
    expect(same?.equals(one ?? Buffer.of())).toBe(true)
    expect(other?.equals(one ?? Buffer.of())).toBe(false)
  })

  it("does not overwrite an existing file", async () => {
    writeFileSync(join(folder, "mine.png"), "mine")
    const { code, stderr } = await leaf("mine.png")
    expect([code, stderr]).toEqual([1, expect.stringContaining("the file already exists")])
    expect(readFileSync(join(folder, "mine.png"), "utf8")).toBe("mine")
  })

  it("says which classes there are", async () => {
    const { code, stderr } = await leaf("none.png", "--class", "Tomato___healthy")
    expect([code, stderr]).toEqual([1, expect.stringContaining("Demo_not_a_leaf")])
  })
})
