/**
 * Runs docs/guide-blob-pipelines.md as a new user does: each command as printed, in one shell from
 * the first to the last, against a real server.
 */
import { afterAll, assert, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const commands = commandsIn(guideText("guide-blob-pipelines.md"))
const walk_ms_max = 120_000

afterAll(cleanUp)

describeWithServer("docs/guide-blob-pipelines.md", () => {
  it(
    "leads from a put to its proof, to batches, ranges and labels",
    async () => {
      const data_dir = newFolder()
      const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
      const env = { API: server.url, ALMANAC_DATA_DIR: data_dir }
      const { code, output } = await walk(newFolder(), commands, env)
      assert.equal(code, 0, output)
      assert.match(output, /"receipt":\{"node_id":"[^"]+","cursor":1,"durable_on":\["[^"]+"\]\}/)
      assert.match(output, /"type":"BlobStored"/)
      assert.match(output, /"cursor":1\b/)
      assert.equal(output.match(/^\{"id":\{"id":"[^"]+"\},"exists":true/gm)?.length, 3)
      assert.equal(output.match(/^\{"id":.*"exists":false\}/gm)?.length, 1)
      assert.equal(output.match(/^\{"id":.*"error":\{"code":"NOT_FOUND"/gm)?.length, 1)
      assert.match(output, /^\{"ids":\[\{"id":"[^"]+"\}\],"has_more":false\}/m)
      assert.match(output, /\{"deleted":true\}\{"exists":false\}/)
      await server.stop()
    },
    walk_ms_max,
  )
})
