/** Runs docs/guide-scale-out.md as a new user does: three nats-servers on one machine. */
import { randomInt } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { findBinary } from "../../launcher/binaries.mjs"
import { describeWithServer } from "../world/programs/nats.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const timeout_ms = 240_000
/** Below the system's ephemeral ports, where six in a row are free. */
const port_min = 12_000
const port_max = 30_000
const folder = mkdtempSync(join(tmpdir(), "almanac-guide-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describeWithServer("docs/guide-scale-out.md, on three nats-servers", () => {
  it(
    "makes three copies, and continues without one of the servers",
    async () => {
      const blocks = commandsIn(guideText("guide-scale-out.md"))
      const own = blocks.filter((block) => block.includes("nats-server") || block.includes("pids"))
      assert.equal(own.length, 2)
      const binary = findBinary("nats-server")?.path ?? ""
      const { code, output } = await walk(folder, own, {
        PATH: [dirname(binary), process.env.PATH].join(delimiter),
        PORT: String(randomInt(port_min, port_max)),
      })
      const contents = [1, 2, 3].map((n) => readFileSync(join(folder, `nats-${n}.log`), "utf8"))
      assert.equal(code, 0, `${output}\n${contents.join("\n")}`)
      assert.match(output, /intact/)
    },
    timeout_ms,
  )
})
