/** The data folder's files that a backup of state omits, as documented. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { exclusionOf } from "#adapters/state/files.ts"
import { root } from "./guide.ts"

/** The paths in the data folder's table, with the documented effect of their loss. */
const table = () => {
  const text = readFileSync(join(root, "docs/architecture.md"), "utf8")
  const [, rows = ""] = /^## The data folder$([\s\S]*?)^## /m.exec(text) ?? []
  return rows.split("\n").flatMap((row) => {
    const [, paths = "", , lost = ""] = row.split("|").map((cell) => cell.trim())
    const names = [...paths.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name.replace(/\/$/, ""))
    return names.map((name) => ({ name: name.replace("*", "x"), lost }))
  })
}

describe("a backup of state", () => {
  it("omits only files of the data folder that are created again or large", () => {
    const rows = table()
    assert.isAbove(rows.length, 20)
    const recreated = /again$|^rebuilt$|^restart the restore$|^created at each start$/
    for (const { name, lost } of rows) {
      const left = exclusionOf(name)
      if (["blobs", "shares", "log-lost"].includes(name)) assert.equal(left, "large", name)
      else if (name === "nats") assert.equal(left, "in_streams", name)
      else if (left !== undefined) assert.match(lost, recreated, name)
      else if (recreated.test(lost)) {
        // Small files whose content stays valid: tokens and list cursors.
        assert.include(["dev-credentials.json", "cursor-key"], name)
      }
    }
  })
})
