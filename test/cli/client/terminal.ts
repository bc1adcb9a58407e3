/** Runs a command on a pseudo-terminal of `script` (util-linux), with a given width. */
import { spawn, spawnSync } from "node:child_process"
import { join } from "node:path"
import { program } from "../../world/server/server.ts"

const root = join(import.meta.dirname, "../../..")

/** Longer than a command takes on a busy machine. */
const verb_ms_max = 60_000

export const has_terminal = spawnSync("script", ["--version"]).status === 0

export interface Shown {
  readonly code: number | null
  /** The raw terminal output, with carriage returns, colours and overwritten lines. */
  readonly text: string
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** Runs `almanac <args>` on a terminal with this many columns. */
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

/** The final contents of the terminal: the last version of each line. */
export const seen = (text: string) =>
  text
    .split("\r\n")
    .map((line) => line.split("\r").at(-1) ?? "")
    .join("\n")
    .replaceAll(csi, "")
