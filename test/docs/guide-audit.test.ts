/**
 * Runs the commands of docs/guide-audit.md about earlier states, as a new user does, on a server
 * that has just started. `test/cli/audit.test.ts` covers its other commands.
 */
import { afterAll, assert, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const [, section = ""] = guideText("guide-audit.md").split("## Show an earlier state")
const commands = commandsIn(section.split("\n## ")[0] ?? "")
const walk_ms_max = 120_000

afterAll(cleanUp)

describeWithServer("docs/guide-audit.md", () => {
  it(
    "shows the state of an unused server",
    async () => {
      const data_dir = newFolder()
      const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
      assert.lengthOf(commands, 2)
      const env = { ALMANAC_DATA_DIR: data_dir }
      const { code, output } = await walk(newFolder(), commands, env)
      assert.equal(code, 0, output)
      // At the time, at the position, and now.
      assert.lengthOf(output.match(/"ring_version": 1,/g) ?? [], 3, output)
      // In the whole log, alone, and from that time on.
      const replayed = output.match(/"stream":"blob-storage\.cluster\.almanac"/g)
      assert.lengthOf(replayed ?? [], 3, output)
      assert.equal((await server.stop()).code, 0)
    },
    walk_ms_max,
  )
})
