/**
 * Runs docs/guide-carrier-search.md as a new user does: each command that needs no network as
 * printed, in one shell from the first to the last, against a real server.
 */
import { afterAll, assert, it } from "vitest"
import { settings_by_path } from "#schemas/settings.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-carrier-search.md")
const commands = commandsIn(guide)
const walk_ms_max = 120_000

afterAll(cleanUp)

describeWithServer("docs/guide-carrier-search.md", () => {
  it(
    "leads from an empty server to a table of carriers",
    async () => {
      const data_dir = newFolder()
      const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
      const env = { API: server.url, ALMANAC_DATA_DIR: data_dir, FMCSA_WEB_KEY: "" }
      const { code, output } = await walk(newFolder(), commands, env)
      assert.equal(code, 0, output)
      assert.match(output, /^\{"error":"no carrier registry is set up: .*carriers import/m)
      assert.match(output, /^\{"carriers":\[\{"mcNumber":1000\d\d,"name":"DEMO /m)
      assert.match(output, /^mcNumber,name,authorityStatus,operatingType\r?$/m)
      assert.match(output, /^\{"summary":\{"total":60000,"found":\d{5},.*"registry":"mirror"\}\}$/m)
      assert.match(output, /^100001-160000$/m)
      assert.match(output, /^100001-100100$/m)
      await server.stop()
    },
    walk_ms_max,
  )

  it("names existing settings", () => {
    const names = [...guide.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => `carrier.${name}`)
    assert.isAbove(names.length, 4)
    for (const name of names) assert.isTrue(settings_by_path.has(name), name)
  })
})
