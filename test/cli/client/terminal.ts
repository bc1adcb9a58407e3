/** A verb on a terminal: a pseudo-terminal of `script` (util-linux), as wide as a test says. */
import { spawn, spawnSync } from "node:child_process"
import { join } from "node:path"
import { program } from "../../world/server/server.ts"

const root = join(import.meta.dirname, "../../..")

/** Longer than a verb takes on a machine that does several things at once. */
const verb_ms_max = 60_000

export const has_terminal = spawnSync("script", ["--version"]).status === 0

export interface Shown {
  readonly code: number | null
  /** As the terminal got it: with carriage returns, colours and lines drawn over. */
  readonly text: string
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** Runs `almanac <args>` on a terminal of so many columns. */
export const onTerminal = (
  columns: number,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
) =>
  new Promise<Shown>((resolve, reject) => {
    const verb = [process.execPath, program, ...args].map(quoted).join(" ")
    const child = spawn("script", ["-qefc", `stty cols ${columns} rows 24; ${verb}`, "/dev/null"], {
      cwd: root,
      env: { PATH: process.env.PATH, TERM: "xterm", ...env },
      stdio: ["ignore", "pipe", "ignore"],
      timeout: verb_ms_max,
    })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part
    })
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, text }))
  })

const csi = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, "g")

/** What stays on the terminal at the end: each line as it was drawn last. */
export const seen = (text: string) =>
  text
    .split("\r\n")
    .map((line) => line.split("\r").at(-1) ?? "")
    .join("\n")
    .replaceAll(csi, "")
