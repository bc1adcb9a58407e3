/** Runs README.md as a newcomer does: its commands as printed, against a real server. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../world/server/server.ts"
import { commandsIn, root, walk } from "./guide.ts"

const readme = readFileSync(join(root, "README.md"), "utf8")
const [two_commands = "", ...commands] = commandsIn(readme)

/** Two screens of a terminal or a browser. */
const lines_max = 130

afterAll(cleanUp)

describe("README.md", () => {
  it("begins with the two commands", () => {
    assert.equal(two_commands, "npm start\nnpm test\n")
  })

  it("fits two screens", () => {
    assert.isAtMost(readme.split("\n").length, lines_max)
  })
})

describeWithServer("README.md with a server", () => {
  it("stores an object and lists it", async () => {
    const folder = newFolder()
    const server = await startServer(join(folder, "data"), { ALMANAC_COMPUTE__KIND: "none" })
    // Another server may have the default port.
    const here = commands.map((block) =>
      block.replaceAll("localhost:9797", new URL(server.url).host),
    )
    const { code, output } = await walk(folder, here, {})
    assert.equal(code, 0, output)
    assert.match(output, /\{"id":\{"id":"([^"]+)"\},"size":5,.*\{"ids":\[\{"id":"\1"\}\]/s)
    await server.stop()
  })
})
