/**
 * Stands in for an agent: reads one line from standard input, writes it to the file given as
 * argument, and waits. `--deaf` ignores SIGTERM; `--brief` exits at once; `--engine` starts a child
 * process and adds its id to the file.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [path = "", how] = process.argv.slice(2)
const hold = () => setInterval(() => undefined, 60_000)

if (how === "--deaf") process.on("SIGTERM", () => undefined)
const engine = how === "--engine" ? spawn("sleep", ["600"], { stdio: "ignore" }).pid : undefined
const lines = createInterface({ input: process.stdin })
lines.once("line", (credentials) => {
  writeFileSync(path, JSON.stringify({ credentials, pid: process.pid, engine }))
  if (how === "--brief") process.exit(3)
})
lines.once("close", () => process.exit(0))
hold()
