/** Runs docs/guide-backup-state.md as an operator does. */
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const test_ms_max = 180_000

const environment = { ALMANAC_SERVICES: "carrier-search" }

afterAll(cleanUp)

describeWithServer("docs/guide-backup-state.md", () => {
  it(
    "leads from a server to its backup, and from an empty folder to the same server",
    async () => {
      const [back_up = "", check = "", restore = "", look = ""] = commandsIn(
        guideText("guide-backup-state.md"),
      )
      const folder = newFolder()
      const data = join(folder, "data")
      const first = await startServer(data, environment)
      const before = await walk(folder, [back_up, check], environment)
      assert.equal(before.code, 0, before.output)
      assert.match(before.output, /backed up to backup: position \d+ of generation 1/)
      assert.match(before.output, /intact: position \d+/)
      await first.stop()
      const after = await walk(folder, [restore, look], environment)
      assert.equal(after.code, 0, after.output)
      assert.match(after.output, /restored to .*: position \d+; start it with almanac serve/)
      // test/process/state/state.services.ts covers the services that run on the restored state.
      assert.match(after.output, /^ok +log +ALMANAC_LOG, generation 1$/m)
      assert.notMatch(after.output, /^fail/m)
    },
    test_ms_max,
  )
})
