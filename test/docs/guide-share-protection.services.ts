/**
 * Runs docs/guide-share-protection.md as a new user does: each command as printed, in one shell
 * from the first to the last, against a real server and a real S3.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { describeWithRadosgw } from "../world/programs/radosgw.ts"
import { cleanUp, newFolder, program, startScript, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, root, walk } from "./guide.ts"

const walk_ms_max = 240_000
const up_ms_max = 60_000

afterAll(cleanUp)

describeWithRadosgw("docs/guide-share-protection.md", () => {
  it(
    "leads from a bucket to a restored file",
    async () => {
      const folder = newFolder()
      const work = newFolder()
      const server = await startServer(folder)
      const s3 = startScript(folder, [join(root, program), "demo", "s3"])
      await s3.waitFor(/^bucket=\S+$/m, up_ms_max)
      writeFileSync(join(work, "demo.env"), s3.printed.stdout)
      const { code, output } = await walk(
        work,
        commandsIn(guideText("guide-share-protection.md")),
        {
          API: server.url,
          ALMANAC_DATA_DIR: folder,
        },
      )
      assert.equal(code, 0, output)
      for (const line of [/^available$/m, /^Restored to a new share$/m]) assert.match(output, line)
      assert.match(output, /^Restored in place$/m)
      assert.match(output, /"deleted":1|deleted: 1/)
      s3.child.kill("SIGINT")
      await s3.ended
      await server.stop()
    },
    walk_ms_max,
  )
})
