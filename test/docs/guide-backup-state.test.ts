/** docs/guide-backup-state.md as an operator walks it, and what it says of the data folder. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { leftOf } from "#adapters/state-files.ts"
import { describeWithServer } from "../nats.ts"
import { cleanUp, newFolder, startServer } from "../process/server.ts"
import { commandsIn, guideText, root, walk } from "./guide.ts"

const test_ms_max = 180_000

const environment = { ALMANAC_SERVICES: "carrier-search" }

afterAll(cleanUp)

/** The paths of the data folder's table, with what it says of their loss. */
const table = () => {
  const text = readFileSync(join(root, "docs/architecture.md"), "utf8")
  const [, rows = ""] = /^## The data folder$([\s\S]*?)^## /m.exec(text) ?? []
  return rows.split("\n").flatMap((row) => {
    const [, paths = "", , lost = ""] = row.split("|").map((cell) => cell.trim())
    const names = [...paths.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name.replace(/\/$/, ""))
    return names.map((name) => ({ name: name.replace("*", "x"), lost }))
  })
}

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
      assert.equal(before.code, 0, before.said)
      assert.match(before.said, /backed up to backup: position \d+ of generation 1/)
      assert.match(before.said, /whole: position \d+/)
      await first.stop()
      const after = await walk(folder, [restore, look], environment)
      assert.equal(after.code, 0, after.said)
      assert.match(after.said, /restored to .*: position \d+; start it with almanac serve/)
      // What serves it afterwards: test/process/state.services.ts.
      assert.match(after.said, /^ok +log +ALMANAC_LOG, generation 1$/m)
      assert.notMatch(after.said, /^fail/m)
    },
    test_ms_max,
  )

  it("leaves of the data folder what is made again or is large, and nothing else", () => {
    const rows = table()
    assert.isAbove(rows.length, 20)
    const remade = /^(built|made|begun|imported|converted|asked for) again|^made at each start/
    for (const { name, lost } of rows) {
      const left = leftOf(name)
      if (name === "blobs" || name === "shares") assert.equal(left, "large", name)
      else if (name === "nats") assert.equal(left, "in_streams", name)
      else if (left !== undefined) assert.match(lost, remade, name)
      else if (remade.test(lost)) {
        // Small, and what it opens goes on to be good: tokens, cursors of lists.
        assert.include(["dev-credentials.json", "cursor-key"], name)
      }
    }
  })
})
