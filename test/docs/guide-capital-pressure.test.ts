/**
 * Runs docs/guide-capital-pressure.md as a new user does: each command that needs no network as
 * printed, in one shell from the first to the last, against a real server.
 */
import { afterAll, assert, it } from "vitest"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { settings_by_path } from "#schemas/settings.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-capital-pressure.md")
const commands = commandsIn(guide)
const walk_ms_max = 120_000

afterAll(cleanUp)

describeWithServer("docs/guide-capital-pressure.md", () => {
  it(
    "leads from an empty page to figures",
    async () => {
      const data_dir = newFolder()
      const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
      const env = { API: server.url, ALMANAC_DATA_DIR: data_dir }
      const { code, output } = await walk(newFolder(), commands, env)
      assert.equal(code, 0, output)
      assert.match(output, /^composite: \d{4} days from .*, \d{4} changed$/m)
      assert.match(output, /^This is generated data/m)
      assert.match(output, /z_label: '/)
      assert.match(output, /^nfci +2 +0 +2026-11-13$/m)
      const answer = await fetch(`${server.url}/api/sources`)
      // The test asserts the values of all fields that it uses.
      const { rows } = (await answer.json()) as { rows: Array<{ status: string; demo: boolean }> }
      const live = rows.filter(({ status }) => status === "live")
      assert.equal(live.length, metrics.filter(({ stub }) => stub === null).length)
      assert.isTrue(live.every(({ demo }) => demo))
      await server.stop()
    },
    walk_ms_max,
  )

  it("names existing settings", () => {
    const names = [...guide.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => `capital.${name}`)
    assert.isAbove(names.length, 4)
    for (const name of names) assert.isTrue(settings_by_path.has(name), name)
  })
})
