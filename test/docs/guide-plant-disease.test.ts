/**
 * Runs docs/guide-plant-disease.md as a new user does: each command that needs no custom model as
 * printed, in one shell from the first to the last, against a real server.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { settings_by_path } from "#schemas/settings.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-plant-disease.md")
const commands = commandsIn(guide)
const walk_ms_max = 120_000

afterAll(cleanUp)

describeWithServer("docs/guide-plant-disease.md", () => {
  it(
    "leads from a generated leaf to the audit of its predictions",
    async () => {
      const data_dir = newFolder()
      const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
      const env = { API: server.url, ALMANAC_DATA_DIR: data_dir }
      const folder = newFolder()
      const { code, output } = await walk(folder, commands, env)
      assert.equal(code, 0, output)
      assert.match(output, /^\{"prediction":"DemoOval___Rust"\}$/m)
      assert.match(output, /^model: demo true, 16 classes$/m)
      assert.match(output, /^\{"prediction":"DemoOval___Rust","predictions":\[\{"class":"DemoOval/m)
      const batch = '{"predictions":[{"name":"leaf.jpg","prediction":"DemoOval___Rust"},'
      assert.include(output, `${batch}{"name":"other.png","prediction":"DemoBlade___healthy"}]}`)
      assert.match(output, /^\{"name":"model","versions":\["[\da-f]{64}"\],/m)
      assert.match(output, /"outputs":\[\{"name":"class",.*"data":\["DemoOval___Rust"\]\}\]\}$/m)
      assert.match(output, /^5 times$/m)
      const png = readFileSync(join(folder, "heatmap.png"))
      assert.equal(png.subarray(1, 4).toString("latin1"), "PNG")
      await server.stop()
    },
    walk_ms_max,
  )

  it("names existing settings", () => {
    const names = [...guide.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => `plant.${name}`)
    assert.isAbove(names.length, 4)
    for (const name of names) assert.isTrue(settings_by_path.has(name), name)
  })
})
