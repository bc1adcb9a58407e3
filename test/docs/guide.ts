/** Runs a guide's commands in one shell, from the first to the last, as a newcomer does. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export const root = join(import.meta.dirname, "../..")

export const guideText = (name: string) => readFileSync(join(root, "docs", name), "utf8")

/** The blocks fenced as `sh`; blocks fenced as `text` need a network or a terminal of their own. */
export const commandsIn = (guide: string) =>
  [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "")

/** Runs the blocks in one bash, in a folder where `./almanac` is the checkout's. */
export const walk = async (
  folder: string,
  blocks: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv,
) => {
  const almanac = join(folder, "almanac")
  writeFileSync(almanac, `#!/bin/sh\nexec node ${join(root, "launcher/almanac.mjs")} "$@"\n`)
  chmodSync(almanac, 0o755)
  const child = spawn("bash", ["-euo", "pipefail", "-c", blocks.join("\n")], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => {
      output += part
    })
  }
  const [code] = await once(child, "close")
  return { code, output }
}
