/**
 * docs/guide-share-protection.md as a newcomer walks it: each command as it is printed, one shell
 * from the first to the last, against a real server and a real S3.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { findTree } from "../../launcher/trees.mjs"
import { cleanUp, newFolder, startScript, startServer } from "../process/server.ts"

const root = join(import.meta.dirname, "../..")
const walk_ms_max = 240_000
const up_ms_max = 60_000

/** What is fenced as `sh`; what is fenced as `text` runs in terminals of its own. */
const commands = () => {
  const guide = readFileSync(join(root, "docs/guide-share-protection.md"), "utf8")
  return [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "")
}

/** Runs the blocks in one bash, in a folder where `./almanac` is the checkout's. */
const shell = async (folder: string, blocks: ReadonlyArray<string>, env: NodeJS.ProcessEnv) => {
  const almanac = join(folder, "almanac")
  writeFileSync(almanac, `#!/bin/sh\nexec node ${join(root, "launcher/almanac.mjs")} "$@"\n`)
  chmodSync(almanac, 0o755)
  const child = spawn("bash", ["-euo", "pipefail", "-c", blocks.join("\n")], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let said = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => {
      said += part
    })
  }
  const [code] = await once(child, "close")
  return { code, said }
}

afterAll(cleanUp)

const why = "radosgw is needed (node launcher/bootstrap.mjs test)"
const has_radosgw = findTree("radosgw") !== undefined
if (!has_radosgw && process.env.ALMANAC_REQUIRE_ALL === "1") throw new Error(why)
if (!has_radosgw) console.warn(`skipped: ${why}`)

describe.skipIf(!has_radosgw)("docs/guide-share-protection.md", () => {
  it(
    "leads from a bucket to a restored file",
    async () => {
      const folder = newFolder()
      const work = newFolder()
      const server = await startServer(folder)
      const s3 = startScript(folder, [join(root, "main.ts"), "demo", "s3"])
      await s3.said(/^bucket=\S+$/m, up_ms_max)
      writeFileSync(join(work, "demo.env"), s3.printed.stdout)
      const { code, said } = await shell(work, commands(), {
        API: server.url,
        ALMANAC_DATA_DIR: folder,
      })
      assert.equal(code, 0, said)
      for (const line of [/^available$/m, /^It is back, in a new share$/m]) assert.match(said, line)
      assert.match(said, /^The share is as it was$/m)
      assert.match(said, /"deleted":1|deleted: 1/)
      s3.child.kill("SIGINT")
      await s3.ended
      await server.stop()
    },
    walk_ms_max,
  )
})
