/**
 * Stands for an agent: reads its line from standard input, writes it to the file that its argument
 * names, and waits. `--deaf`: it hears no SIGTERM; `--brief`: it ends at once; `--engine`: it has
 * a child, whose id is in the file too.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [path = "", how] = process.argv.slice(2)
const hold = () => setInterval(() => undefined, 60_000)

if (how === "--deaf") process.on("SIGTERM", () => undefined)
const engine = how === "--engine" ? spawn("sleep", ["600"], { stdio: "ignore" }).pid : undefined
const lines = createInterface({ input: process.stdin })
lines.once("line", (papers) => {
  writeFileSync(path, JSON.stringify({ papers, pid: process.pid, engine }))
  if (how === "--brief") process.exit(3)
})
lines.once("close", () => process.exit(0))
hold()
